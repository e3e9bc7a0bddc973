# Starts a grandchild in a session of its own, which no signal to the group reaches.
setsid sh -c 'trap "" TERM HUP; i=0; while [ $((i += 1)) -lt 300 ]; do sleep 1; done' "stray-of-$1" </dev/null >/dev/null 2>&1 &
trap '' TERM
while :; do sleep 1; done
