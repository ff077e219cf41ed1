
# Names that are not in the command line's definition: the commands of luc-fleet, services, emulated disks, policies.
_luc_names() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]-} names='' path
    if [[ $command == fleet && $COMP_CWORD -gt 1 ]]; then
        declare -F _luc__fleet >/dev/null || eval "$(luc fleet completions bash 2>/dev/null)"
        if declare -F _luc__fleet >/dev/null; then
            COMP_WORDS=(luc-fleet "${COMP_WORDS[@]:2}")
            COMP_CWORD=$((COMP_CWORD - 1))
            _luc__fleet luc-fleet "$cur" "${COMP_WORDS[COMP_CWORD - 1]}"
            return
        fi
    fi
    _luc "$@"
    if [[ $cur == -* || $COMP_CWORD -lt 2 ]]; then return; fi
    case "$command $prev" in
    "throttle --policy") names="auto off fcfs turns" ;;
    *" --policy") names="auto off delay pid" ;;
    "enable "*)
        names=$(systemctl list-unit-files --type=service --no-legend --plain 2>/dev/null | while read -r path _; do
            [[ $path == *@.service ]] || printf '%s ' "$path"
        done)
        ;;
    "disable "* | "status "*)
        for path in /etc/systemd/system/*.d/50-luc.conf; do
            path=${path%.d/50-luc.conf}
            [[ $path == *'*'* ]] || names+=" ${path##*/}"
        done
        ;;
    "disk "*)
        case ${COMP_WORDS[2]} in
        stats | status | fail | cut | restore | remove)
            if ((COMP_CWORD > 2)); then
                for path in "${LUC_RUN_DIR:-/run/luc}"/disk/*/; do
                    [[ ! -d $path ]] || names+=" $(basename "$path")"
                done
            fi
            ;;
        esac
        ;;
    esac
    if [[ -n $names ]]; then mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur"); fi
}

complete -F _luc_names -o bashdefault -o default luc
