# Stops itself: no handler of its own will ever run again.
kill -STOP $$
while :; do sleep 1; done
