# Ignores SIGTERM, reads nothing, goes on.
trap '' TERM INT HUP
while :; do sleep 1; done
