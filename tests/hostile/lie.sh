# Claims more than an agent may: a status that does not exist.
echo '{"v":1,"type":"ready"}'
echo '{"v":1,"type":"result","result":{"status":"triumphant","abort":null}}'
while :; do sleep 1; done
