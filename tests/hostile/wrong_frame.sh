# Says it is ready, then what no agent says.
echo '{"v":1,"type":"ready"}'
echo '{"v":1,"type":"obey","because":"I said so"}'
while :; do sleep 1; done
