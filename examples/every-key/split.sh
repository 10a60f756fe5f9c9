echo 'tasks: [{id: made, command: echo made}]'
