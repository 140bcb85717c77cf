# shellcheck shell=sh
# What the hooks of git-batch share. Each sets `name` and sources this file, which lies beside it.
# POSIX shell; as long as nothing concerns a batch only what is built into it is used.

python='@PYTHON@' # the interpreter that git-batch was installed with; written by the installation
here=${0%/*}

# `git batch hooks status` asks git to run us, to see that it would and that we find git-batch.
if [ -n "${GIT_BATCH_PROBE-}" ]; then
    [ -x "$python" ] || command -v git-batch >/dev/null 2>&1 || exit 1
    echo "git-batch $name $GIT_BATCH_PROBE"
    exit 0
fi

# git gives a hook GIT_DIR, or starts it at the top of a plain working tree.
common=${GIT_DIR:-.git}
[ -f "$common/HEAD" ] || common=$(git rev-parse --git-dir) || exit
if [ -f "$common/commondir" ]; then # of a linked working tree
    read -r up <"$common/commondir"
    case $up in /*) common=$up ;; *) common=$common/$up ;; esac
fi

records() { # whether the record of any batch is here
    [ -d "$common/refs/notes/batch" ] && return
    [ -f "$common/packed-refs" ] || return
    # Sorted by name: mostly the first lines tell, and starting grep costs more than a whole hook.
    lines=0
    while read -r oid ref; do
        case $lines:$oid:$ref in
        0:'#':*\ sorted*) ;;
        *:refs/notes/batch/*) return 0 ;;
        0:* | 50:*) grep -q ' refs/notes/batch/' "$common/packed-refs" && return 0 || return 1 ;;
        *:refs/remotes/* | *:refs/tags/*) return 1 ;;
        esac
        lines=$((lines + 1))
    done <"$common/packed-refs"
    return 1
}

live() { # whether a run may be going on: a process that a run lock names exists
    for lock in "$common"/batch/*.lock; do
        [ -s "$lock" ] || continue
        read -r line <"$lock" || : # one line without its end
        pid=${line#*'"pid": '}
        pid=${pid%%[!0-9]*}
        [ -n "$pid" ] || continue
        if kill -0 "$pid" 2>/dev/null || [ -d "/proc/$pid" ]; then return; fi
    done
    return 1
}

ours() { # whether a branch (commit and full names, one a line) is named by a record, or its tip is a task's
    named=$(git for-each-ref --format='%(objectname):batch.toml' refs/notes/batch |
        git cat-file --batch 2>/dev/null | grep '^branch = ')
    tips=
    while read -r tip refs; do
        for ref in $refs; do
            case $named in *"branch = \"${ref#refs/heads/}\""*) return 0 ;; esac
        done
        tips="$tips $tip"
    done <<END
$1
END
    # shellcheck disable=SC2086 # one word each
    [ -n "$(git --no-replace-objects log --no-walk --no-notes --no-show-signature \
        --format='%(trailers:key=Batch-Record)' $tips 2>&1)" ]
}

batch() { # run git-batch: 0 go on, 3 refused, anything else: it could not be run
    if [ -x "$python" ]; then
        "$python" -E -P -c 'import os
try:
    from git_batch.cli.hookrun import main
except ImportError:
    os._exit(127)
os._exit(main())' "$name" "$@"
        status=$?
        [ $status = 127 ] || return $status
    fi
    command -v git-batch >/dev/null 2>&1 || return 127
    git-batch hooks run "$name" "$@"
}

unable() { # refuse what can't be verified
    echo "error: this is the branch of a batch, and git-batch could not be run to verify it (exit status $1)" >&2
    [ "$1" != 127 ] || echo "hint: install it: pipx install git-batch-runner, then git batch hooks install" >&2
    exit 1
}

given() { # print what came on standard input again
    printf '%s' "${input:+$input
}"
}

before() { # become what was here before us: same arguments, input and name
    old=$here/$name.before-batch
    [ -x "$old" ] || exit 0
    read -r line <"$old" 2>/dev/null || :
    case $line in
    '#!'*[/\ ]sh | '#!'*[/\ ]bash | '#!'*[/\ ]dash | '#!'*[/\ ]ksh | '#!'*[/\ ]sh\ -* | '#!'*[/\ ]bash\ -*)
        # Some ask for their own name and folder (husky's do): a sourced script finds what it had.
        # shellcheck disable=SC2016,SC2086 # for that shell; words of the first line
        exec ${line#??} -c '. "$0.before-batch"' "$here/$name" "$@"
        ;;
    esac
    exec "$old" "$@"
}
