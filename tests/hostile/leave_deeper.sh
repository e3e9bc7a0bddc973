# A grandchild in a session of its own starts one program after the other in sessions of theirs.
setsid sh "${0%/*}/leave_often.sh" "$1" </dev/null >/dev/null 2>&1 &
trap '' TERM
while :; do sleep 1; done
