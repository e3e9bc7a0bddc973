# Starts a program in a session of its own and is gone before anybody looks: nobody sees whose it is.
setsid sh -c 'trap "" TERM HUP; i=0; while [ $((i += 1)) -lt 300 ]; do sleep 1; done' "stray-of-$1" </dev/null >/dev/null 2>&1 &
