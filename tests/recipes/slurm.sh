# tests/recipes/slurm.sh: a Slurm of one node, for the test that sources this behind lib.sh: munged, slurmctld and slurmd with
# files, ports and a key of their own. slurm_stop ends them, however far the start came.
slurm_dir=$tmp/slurm
slurm_daemons=()

# free_ports N: so many numbers that nobody listens on.
free_ports() {
	python3 - "$1" <<-'END'
	import socket, sys
	sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
	for s in sockets:
	    s.bind(("127.0.0.1", 0))
	print(*(s.getsockname()[1] for s in sockets))
	END
}

slurm_config() {
	local name control node
	name=$(hostname -s)
	read -r control node < <(free_ports 2)
	cat >"$slurm_dir/slurm.conf" <<-END
	ClusterName=recipe
	SlurmctldHost=$name(127.0.0.1)
	SlurmctldPort=$control
	SlurmdPort=$node
	SlurmUser=$(id -un)
	SlurmdUser=$(id -un)
	AuthType=auth/munge
	AuthInfo=socket=$slurm_dir/munge/socket
	CredType=cred/munge
	MailProg=/bin/true
	StateSaveLocation=$slurm_dir/state
	SlurmdSpoolDir=$slurm_dir/spool
	SlurmctldPidFile=$slurm_dir/slurmctld.pid
	SlurmdPidFile=$slurm_dir/slurmd.pid
	SlurmctldLogFile=$slurm_dir/slurmctld.log
	SlurmdLogFile=$slurm_dir/slurmd.log
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	MpiDefault=none
	SchedulerType=sched/builtin
	SelectType=select/cons_tres
	SelectTypeParameters=CR_Core
	JobAcctGatherType=jobacct_gather/none
	AccountingStorageType=accounting_storage/none
	SlurmdParameters=config_overrides
	ReturnToService=2
	NodeName=$name NodeHostname=$name NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
	PartitionName=all Nodes=$name Default=YES MaxTime=10 State=UP
	END
}

# slurm_daemon NAME COMMAND...: in the foreground of a process of ours, which is remembered.
slurm_daemon() {
	local name=$1
	shift
	"$@" >"$slurm_dir/$name.out" 2>&1 &
	slurm_daemons+=($!)
}

# The test is skipped where a daemon cannot run, and says why: that is no fault of cudaspy's.
slurm_start() {
	local tries
	mkdir -p "$slurm_dir"/{munge,state,spool}
	chmod 755 "$tmp" "$slurm_dir"
	chmod 700 "$slurm_dir/munge"
	head -c 1024 /dev/urandom >"$slurm_dir/munge/key"
	chmod 400 "$slurm_dir/munge/key"
	slurm_config
	export SLURM_CONF=$slurm_dir/slurm.conf
	slurm_daemon munged munged --foreground --force --key-file="$slurm_dir/munge/key" --socket="$slurm_dir/munge/socket" \
		--pid-file="$slurm_dir/munge/pid" --seed-file="$slurm_dir/munge/seed" --log-file="$slurm_dir/munge/log"
	for ((tries = 0; tries < 300; tries++)); do
		[ -S "$slurm_dir/munge/socket" ] && break
		sleep 0.1
	done
	slurm_daemon slurmctld slurmctld -D -f "$SLURM_CONF"
	slurm_daemon slurmd slurmd -D -N "$(hostname -s)" -f "$SLURM_CONF"
	for ((tries = 0; tries < 300; tries++)); do
		[ "$(timeout 5 sinfo -h -o %T 2>/dev/null)" = idle ] && return
		kill -0 "${slurm_daemons[@]}" 2>/dev/null || break
		sleep 0.2
	done
	skip "Slurm does not start here: $(tail -qn 2 "$slurm_dir"/*.out | tail -n 3 | paste -sd' ')"
}

slurm_stop() {
	local daemon tries
	[ ${#slurm_daemons[@]} -gt 0 ] || return 0
	timeout 10 scancel --user="$(id -un)" 2>/dev/null
	kill "${slurm_daemons[@]}" 2>/dev/null
	for daemon in "${slurm_daemons[@]}"; do
		for ((tries = 0; tries < 100; tries++)); do
			kill -0 "$daemon" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$daemon" 2>/dev/null
	done
	wait "${slurm_daemons[@]}" 2>/dev/null
	slurm_daemons=()
}
