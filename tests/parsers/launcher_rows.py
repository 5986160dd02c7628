"""Lines of launchers and schedulers as they print them, with the event that each promises."""

from __future__ import annotations

from typing import Any

Row = tuple[str, str, dict[str, Any]]

TORCHRUN: list[Row] = [
    (
        "failed (exitcode: -9) local_rank: 1 (pid: 17746) of binary: /venv/bin/python3",
        "launch.child_exit",
        {
            "exit_code": -9,
            "signal": 9,
            "local_rank": 1,
            "pid": 17746,
            "suggests": "rank-died",
            "nature": "symptom",
        },
    ),
    (
        (
            "E1130 20:32:10.786000 5869 torch/distributed/elastic/multiprocessing/api.py:1002] "
            "failed (exitcode: 1) local_rank: 0 (pid: 5887) of binary: /venv/bin/python3"
        ),
        "launch.child_exit",
        {"exit_code": 1, "local_rank": 0, "pid": 5887, "nature": "consequence"},
    ),
    (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "launch.child_failed",
        {"nature": "consequence"},
    ),
    (
        "  exitcode  : -9 (pid: 17746)  (SIGKILL)",
        "launch.exit_row",
        {"exit_code": -9, "signal": 9, "pid": 17746},
    ),
    (
        "  exitcode: 1 (pid: 88)",
        "launch.exit_row",
        {"exit_code": 1, "pid": 88, "nature": "consequence"},
    ),
    (
        "  traceback : Signal 15 (SIGTERM) received by PID 17726",
        "launch.exit_row",
        {"signal": 15, "pid": 17726, "nature": "consequence"},
    ),
    (
        "Sending process 17726 closing signal SIGTERM",
        "launch.sigterm_sent",
        {"pid": 17726, "signal": 15, "nature": "consequence"},
    ),
    (
        ("WARNING:torch.distributed.elastic.multiprocessing.api:Closing process 4242 via signal SIGTERM"),
        "launch.sigterm_sent",
        {"pid": 4242, "signal": 15},
    ),
    (
        "Unable to shutdown process 17726 via SIGTERM, forcefully exiting via SIGKILL",
        "launch.force_kill",
        {"pid": 17726, "signal": 9},
    ),
    (
        ("Unable to shutdown process 7 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL"),
        "launch.force_kill",
        {"pid": 7, "signal": 9},
    ),
    (
        (
            "[default] Worker pid=17726 stuck in uninterruptible sleep (D-state) for 120.0s "
            "(>= 120.0s); marking worker group UNHEALTHY and disabling restarts."
        ),
        "launch.stuck_in_kernel",
        {"pid": 17726, "suggests": "storage-hang"},
    ),
    (
        (
            "Process 17726 did not exit after SIGKILL within 30s; abandoning and continuing "
            "teardown. Worker may be in uninterruptible kernel sleep"
        ),
        "launch.stuck_in_kernel",
        {"pid": 17726, "signal": 9},
    ),
    (
        "Received 15 death signal, shutting down workers",
        "launch.received_signal",
        {"signal": 15, "nature": "symptom"},
    ),
    (
        "Received Signals.SIGTERM death signal, shutting down workers",
        "launch.received_signal",
        {"signal": 15},
    ),
    (
        "Received SIGINT death signal, shutting down workers",
        "launch.received_signal",
        {"signal": 2},
    ),
    (
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 20100 got signal: 15"),
        "launch.received_signal",
        {"pid": 20100, "signal": 15},
    ),
    (
        "[default] Worker group FAILED. 3/3 attempts left; will restart worker group",
        "launch.restart",
        {"state": "FAILED", "attempts_left": 3, "attempts_max": 3, "attempt": 1},
    ),
    (
        "[default] Worker group UNHEALTHY. 1/3 attempts left;  will restart worker group",
        "launch.restart",
        {"attempt": 3},
    ),
    (
        "[default] Detected 1 new nodes from group_rank=0; will restart worker group",
        "launch.membership",
        {"count": 1, "group_rank": 0, "nature": "noise"},
    ),
    (
        ("Local worker group finished (SUCCEEDED). Waiting 300 seconds for other agents to finish"),
        "launch.run_ended",
        {"ok": True, "state": "SUCCEEDED", "nature": "info"},
    ),
    (
        ("Local worker group finished (WorkerState.FAILED). Waiting 300 seconds for other agents to finish"),
        "launch.run_ended",
        {"ok": False, "state": "FAILED", "nature": "consequence"},
    ),
    (
        ("[default] worker group successfully finished. Waiting 300 seconds for other agents to finish."),
        "launch.run_ended",
        {"ok": True},
    ),
    (
        (
            "local_rank 0 FAILED with no error file. Decorate your entrypoint fn with @record "
            "for traceback info."
        ),
        "launch.no_error_file",
        {"local_rank": 0, "nature": "noise"},
    ),
    (
        (
            "no error file defined for parent, to copy child error file "
            "(/tmp/te_x/run_y/attempt_0/1/error.json)"
        ),
        "launch.error_file_path",
        {"path": "/tmp/te_x/run_y/attempt_0/1/error.json"},
    ),
    (
        (
            "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, "
            "to avoid your system being overloaded"
        ),
        "launch.torchrun_start",
        {"nature": "noise"},
    ),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        "launch.rdzv_timeout",
        {"nature": "cause", "cause": "rendezvous"},
    ),
    (
        (
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The "
            "connection to the C10d store has failed. See inner exception for details."
        ),
        "launch.rdzv_connection",
        {
            "nature": "symptom",
            "text": ("The connection to the C10d store has failed. See inner exception for details."),
        },
    ),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        "launch.rdzv_closed",
        {"nature": "consequence"},
    ),
    (
        (
            "torch.distributed.elastic.rendezvous.api.RendezvousGracefulExitError: The node "
            "'a_1_0' has been removed"
        ),
        "launch.rdzv_closed",
        {"nature": "consequence"},
    ),
    (
        (
            "The node 'host-b_1234_0' has failed to send a keep-alive heartbeat to the "
            "rendezvous 'none' due to an error of type RendezvousConnectionError."
        ),
        "launch.rdzv_heartbeat",
        {"node": "host-b_1234_0", "run_id": "none", "type": "RendezvousConnectionError"},
    ),
    (
        (
            "The node 'host-b_1_0' has failed to shutdown the rendezvous 'job17' due to an "
            "error of type RendezvousConnectionError."
        ),
        "launch.rdzv_heartbeat",
        {"run_id": "job17"},
    ),
    (
        "-- Process 1 terminated with the following error:",
        "launch.process_failed",
        {"local_rank": 1, "nature": "symptom"},
    ),
    (
        ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV"),
        "launch.process_failed",
        {"local_rank": 1, "signal": 11, "suggests": "rank-died"},
    ),
    (
        ("torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1"),
        "launch.process_failed",
        {"local_rank": 0, "exit_code": 1, "nature": "consequence"},
    ),
    (
        (
            '{"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": '
            '"Traceback (most recent call last):\\n  File \\"/job/train.py\\", line 79, in '
            'main\\n    step()\\nValueError: bad: \\"x\\"\\n", "timestamp": "1796070431"}}}'
        ),
        "launch.error_file",
        {"type": "ValueError", "message": 'bad: "x"', "time": "1796070431"},
    ),
]

RAY: list[Row] = [
    (
        "- (ip=10.20.0.11, pid=26866) world_rank=3, local_rank=1, node_rank=1",
        "ray.rank_map",
        {"ip": "10.20.0.11", "pid": 26866, "rank": 3, "local_rank": 1, "node_rank": 1},
    ),
    (
        "- (node_id=4f1e, ip=10.20.0.12, pid=7) world_rank=9, local_rank=1, node_rank=1",
        "ray.rank_map",
        {"ip": "10.20.0.12", "pid": 7, "rank": 9},
    ),
    (
        "Setting up process group for: env:// [rank=0, world_size=4]",
        "ray.process_group",
        {"rank": 0, "world_size": 4, "nature": "info"},
    ),
    (
        (
            "A worker died or was killed while executing a task by an unexpected system error. "
            "To troubleshoot the problem, check the logs for the dead worker. Worker ID: ab "
            "Node ID: a3 Worker IP address: 10.20.0.11 Worker port: 32889 Worker PID: 7604 "
            "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with "
            "a connection error code 2. End of file. Some common causes include: (1) the "
            "process was killed by the OOM killer"
        ),
        "ray.worker_died",
        {
            "pid": 7604,
            "ip": "10.20.0.11",
            "exit_type": "SYSTEM_ERROR",
            "reason": ("Worker unexpectedly exits with a connection error code 2. End of file"),
            "nature": "symptom",
            "suggests": "rank-died",
        },
    ),
    (
        (
            "Worker exit detail: Worker exits unexpectedly by a signal. SystemExit is raised "
            "(sys.exit is called). Exit code: 1."
        ),
        "ray.worker_died",
        {"exit_code": 1, "nature": "symptom"},
    ),
    (
        (
            "Worker exit type: INTENDED_SYSTEM_EXIT Worker exit detail: Worker exits because "
            "the actor is killed. "
        ),
        "ray.worker_died",
        {"nature": "noise"},
    ),
    (
        "Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: Task was killed",
        "ray.worker_died",
        {"nature": "cause", "cause": "oom-host"},
    ),
    (
        (
            "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing "
            "this task. Check python-core-worker-*.log files for more information."
        ),
        "ray.worker_died",
        {"suggests": "rank-died"},
    ),
    (
        (
            "ray.exceptions.RayTaskError(KeyError): ray::RolloutWorker.fit() (pid=7003, "
            "ip=10.20.0.11, actor_id=68, repr=<a>)"
        ),
        "ray.task_error",
        {"type": "KeyError", "pid": 7003, "ip": "10.20.0.11", "nature": "consequence"},
    ),
    (
        (
            "ray.exceptions.RayTaskError(RuntimeError): \x1b[36mray::_Inner.train()\x1b[39m "
            "(pid=4242, ip=10.0.0.2, actor_id=a)"
        ),
        "ray.task_error",
        {"type": "RuntimeError", "pid": 4242},
    ),
    (
        (
            "ray.exceptions.ActorDiedError: The actor died because of an error raised in its "
            "creation task, ray::RayTrainWorker.__init__() (pid=12, ip=10.0.0.2, actor_id=abc)"
        ),
        "ray.actor_init_failed",
        {"pid": 12, "ip": "10.0.0.2", "nature": "consequence"},
    ),
    (
        "*** SIGSEGV received at time=1796070531 on cpu 0 ***",
        "ray.signal_caught",
        {"signal": 11, "nature": "symptom", "suggests": "rank-died"},
    ),
    (
        "*** SIGTERM received at time=1796070531 ***",
        "ray.signal_caught",
        {"signal": 15, "nature": "consequence"},
    ),
    (
        (
            "ray.exceptions.LocalRayletDiedError: The task's local raylet died. Check "
            "raylet.out for more information."
        ),
        "ray.node_died",
        {"nature": "symptom"},
    ),
    (
        (
            "The node with node id: 4f1e and address: 10.0.0.2 and node name: 10.0.0.2 has "
            "been marked dead because the detector has missed too many heartbeats from it."
        ),
        "ray.node_died",
        {"node": "4f1e", "ip": "10.0.0.2"},
    ),
    (
        "The raylet was marked dead: health check failed due to missing too many heartbeats",
        "ray.node_died",
        {"suggests": "rank-died"},
    ),
    (
        (
            "ray.exceptions.NodeDiedError: Task failed because the node it was running on is "
            "dead or unavailable. Node IP: 10.0.0.2, node ID: 4f1e. This can happen if the "
            "node was preempted, had a hardware failure, or its raylet crashed unexpectedly. "
            "health check failed due to missing too many heartbeats"
        ),
        "ray.node_died",
        {"ip": "10.0.0.2", "node": "4f1e"},
    ),
    (
        (
            "\tthe actor's node was terminated unexpectedly: health check failed due to "
            "missing too many heartbeats"
        ),
        "ray.node_died",
        {"suggests": "rank-died", "nature": "symptom"},
    ),
    (
        "\tthe actor's node was terminated expectedly: received SIGTERM",
        "ray.node_died",
        {"suggests": "preempted"},
    ),
    (
        "the actor's node was preempted: spot",
        "ray.node_died",
        {"nature": "cause", "cause": "preempted"},
    ),
    (
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
        "ray.oom_kill",
        {"nature": "cause", "cause": "oom-host"},
    ),
    (
        "(raylet) 3 worker(s) were killed due to the node running low on memory.",
        "ray.oom_kill",
        {"count": 3, "cause": "oom-host"},
    ),
    (
        (
            "2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed "
            "due to other reasons at node (ID: abc, IP: 10.0.0.2) over the last time period."
        ),
        "ray.oom_kill",
        {"count": 2, "ip": "10.0.0.2", "nature": "cause", "cause": "oom-host"},
    ),
    (
        (
            "0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed "
            "due to other reasons at node (ID: abc, IP: 10.0.0.2) over the last time period."
        ),
        "ray.oom_kill",
        {"count": 0, "nature": "noise"},
    ),
    # the count stood on the line before, which a terminal broke
    (
        " actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: abc",
        "ray.oom_kill",
        {"count": None, "nature": "symptom", "suggests": "oom-host"},
    ),
    (
        ("Graceful shutdown of backend failed. This is expected if one of the workers has crashed."),
        "ray.backend_shutdown",
        {"nature": "noise"},
    ),
    (
        "The actor is dead because it was killed by `ray.kill`.",
        "ray.actor_killed",
        {"nature": "noise"},
    ),
    (
        (
            "core_worker.cc:2465: Actor with class name: 'PreemptionWatcher' and ID: '35' has "
            "constructor arguments in the object store and max_restarts > 0. If the arguments "
            "in the object store go out of scope or are lost, ..."
        ),
        "ray.actor_restart_note",
        {"nature": "noise"},
    ),
    (
        (
            "Failed to send resource request for train-44. If this only happens transiently "
            "during network partition"
        ),
        "ray.resource_request",
        {"nature": "noise"},
    ),
]

SLURM: list[Row] = [
    (
        "srun: error: node-03: task 3: Killed",
        "slurm.task_exit",
        {"host": "node-03", "task": 3, "tasks": (3,), "signal": 9, "suggests": "rank-died"},
    ),
    (
        "srun: error: node-[01-02]: tasks 0-2,7: Segmentation fault (core dumped)",
        "slurm.task_exit",
        {"host": "node-[01-02]", "tasks": (0, 1, 2, 7), "signal": 11},
    ),
    (
        "srun: error: n1: tasks 0-7: Terminated",
        "slurm.task_exit",
        {"signal": 15, "nature": "consequence"},
    ),
    (
        "srun: error: n1: task 0: Aborted (core dumped)",
        "slurm.task_exit",
        {"signal": 6, "nature": "symptom"},
    ),
    (
        "srun: error: node-a: tasks 2-3: Exited with exit code 1",
        "slurm.task_exit",
        {"host": "node-a", "tasks": (2, 3), "exit_code": 1, "nature": "consequence"},
    ),
    (
        "srun: error: node-a: task 4: Exited with exit code 137",
        "slurm.task_exit",
        {"task": 4, "exit_code": 137, "signal": 9, "nature": "symptom"},
    ),
    (
        "srun: error: node-03: task 3: Out Of Memory",
        "slurm.oom",
        {"task": 3, "host": "node-03", "nature": "cause", "cause": "oom-cgroup"},
    ),
    (
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=123456.0. Some of the step "
            "tasks have been OOM Killed."
        ),
        "slurm.oom",
        {"count": 1, "job": "123456.0", "cause": "oom-cgroup"},
    ),
    (
        (
            "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=214.batch cgroup. Some "
            "of your processes may have been killed by the cgroup out-of-memory handler."
        ),
        "slurm.oom",
        {"count": 2, "job": "214.batch"},
    ),
    (
        ("slurmstepd: error: StepId=123.0 exceeded memory limit (68719476 > 67108864), being killed"),
        "slurm.oom",
        {"job": "123.0", "cause": "oom-cgroup"},
    ),
    (
        "slurmstepd: error: Exceeded step memory limit at some point.",
        "slurm.memory_limit_reached",
        {"nature": "symptom", "suggests": "oom-cgroup"},
    ),
    (
        (
            "slurmstepd: error: *** STEP 123456.0 ON node-01 CANCELLED AT 2026-05-26T12:00:00 "
            "DUE TO TIME LIMIT ***"
        ),
        "slurm.cancelled",
        {
            "scope": "STEP",
            "job": "123456.0",
            "host": "node-01",
            "time": "2026-05-26T12:00:00",
            "reason": "TIME LIMIT",
            "nature": "cause",
            "cause": "preempted",
        },
    ),
    (
        ("slurmstepd: error: *** JOB 733 ON node-a CANCELLED AT 2022-08-11T22:41:12 DUE TO PREEMPTION ***"),
        "slurm.cancelled",
        {"scope": "JOB", "cause": "preempted"},
    ),
    (
        ("slurmstepd: error: *** JOB 733 ON node-a CANCELLED AT 2022-08-11T22:41:12 DUE TO JOB REQUEUE ***"),
        "slurm.cancelled",
        {"reason": "JOB REQUEUE", "cause": "preempted"},
    ),
    (
        (
            "slurmstepd: error: *** JOB 733 ON node-a CANCELLED AT 2022-08-11T22:41:12 DUE TO "
            "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
        ),
        "slurm.cancelled",
        {"reason": "NODE FAILURE", "nature": "symptom", "suggests": "rank-died"},
    ),
    (
        (
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-05-26T12:00:00 DUE to "
            "SIGNAL Terminated ***"
        ),
        "slurm.cancelled",
        {"reason": "SIGNAL Terminated", "nature": "symptom"},
    ),
    (
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-05-26T12:00:00 DUE TO TASK FAILURE ***"),
        "slurm.cancelled",
        {"nature": "consequence"},
    ),
    (
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-05-26T12:00:00 ***",
        "slurm.cancelled",
        {"nature": "consequence"},
    ),
    (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-05-26T12:00:00 ***",
        "slurm.cancelled",
        {"nature": "symptom", "suggests": "preempted"},
    ),
    (
        "slurmstepd: error: *** REASON: admin drained node ***",
        "slurm.reason",
        {"reason": "admin drained node"},
    ),
    (
        (
            "slurmstepd: error: *** STEP 123456.0 ON node-01 FAILED (non-zero exit code or "
            "other failure mode) ***"
        ),
        "slurm.step_failed",
        {"job": "123456.0", "nature": "consequence"},
    ),
    (
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "slurm.step_aborted",
        {"limit_s": 32, "nature": "consequence"},
    ),
    (
        "srun: Terminating StepId=123456.0",
        "slurm.terminating",
        {"job": "123456.0", "nature": "consequence"},
    ),
    (
        "srun: Force Terminated StepId=123456.0",
        "slurm.terminating",
        {"job": "123456.0"},
    ),
    (
        "srun: error: Node failure on node-07",
        "slurm.node_failure",
        {"host": "node-07", "nature": "symptom", "suggests": "rank-died"},
    ),
    (
        "srun: First task exited 60s ago",
        "slurm.first_task_exited",
        {"waited_s": 60},
    ),
    (
        (
            "srun: error: Task launch for StepId=123456.0 failed on node node-05: "
            "Communication connection failure"
        ),
        "slurm.launch_failed",
        {"job": "123456.0", "host": "node-05", "reason": "Communication connection failure"},
    ),
    (
        "srun: error: Timed out waiting for job step to complete",
        "slurm.timeout",
        {"nature": "symptom"},
    ),
    (
        "srun: error: Socket timed out on send/recv operation",
        "slurm.timeout",
        {"nature": "symptom"},
    ),
    (
        (
            "submitit WARNING (2022-08-11 22:41:11,453) - Caught signal SIGUSR2 on node-a: "
            "this job is preempted."
        ),
        "slurm.submitit_signal",
        {"signal": 12, "host": "node-a", "reason": "preempted", "cause": "preempted"},
    ),
    (
        "123456.0      train.sh    gpu   proj    64 OUT_OF_ME+    0:125 ",
        "slurm.job_state",
        {"job": "123456.0", "state": "OUT_OF_MEMORY", "nature": "cause", "cause": "oom-cgroup"},
    ),
    (
        "123456|train|01:30:00|TIMEOUT|0:0",
        "slurm.job_state",
        {"job": "123456", "state": "TIMEOUT", "cause": "preempted"},
    ),
    (
        "123456_7     train   gpu  proj  8  PREEMPTED   0:0",
        "slurm.job_state",
        {"job": "123456_7", "cause": "preempted"},
    ),
    (
        "123456  train   gpu  proj  8  NODE_FAIL   1:0",
        "slurm.job_state",
        {"exit_code": 1, "suggests": "rank-died"},
    ),
    (
        "123456  train   gpu  proj  8  CANCELLED by 1000   0:15",
        "slurm.job_state",
        {"state": "CANCELLED", "signal": 15, "nature": "symptom", "suggests": "preempted"},
    ),
    (
        "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)",
        "slurm.job_state",
        {"reason": "TimeLimit"},
    ),
]

MPI: list[Row] = [
    (
        ("mpirun noticed that process rank 3 with PID 31337 on node node-02 exited on signal 9 (Killed)."),
        "mpi.rank_exit",
        {"task": 3, "pid": 31337, "host": "node-02", "signal": 9, "suggests": "rank-died"},
    ),
    (
        (
            "prterun noticed that process rank 1 with PID 0 on node node-0 exited on signal 11 "
            "(Segmentation fault)."
        ),
        "mpi.rank_exit",
        {"task": 1, "host": "node-0", "signal": 11},
    ),
    (
        "Primary job  terminated normally, but 1 process returned",
        "mpi.primary_job",
        {"nature": "noise"},
    ),
    (
        "[node-0:24684] Signal: Segmentation fault (11)",
        "mpi.crash",
        {"host": "node-0", "pid": 24684, "signal": 11, "suggests": "rank-died"},
    ),
    (
        "[node-0:288505:0:296459] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x48)",
        "mpi.crash",
        {"host": "node-0", "pid": 288505, "signal": 11, "suggests": "rank-died"},
    ),
    (
        "Signal: Bus error (7)",
        "mpi.crash",
        {"signal": 7},
    ),
]

KUBERNETES: list[Row] = [
    (
        "      Reason:       OOMKilled",
        "k8s.oom_killed",
        {"nature": "cause", "cause": "oom-cgroup"},
    ),
    (
        '"state":{"terminated":{"reason":"OOMKilled"}}',
        "k8s.oom_killed",
        {"cause": "oom-cgroup"},
    ),
    (
        "trainer-worker-2   0/1     OOMKilled   0          5m",
        "k8s.oom_killed",
        {"cause": "oom-cgroup"},
    ),
    (
        "System OOM encountered, victim process: python, pid: 31337",
        "k8s.system_oom",
        {"pid": 31337, "cause": "oom-host"},
    ),
    (
        "      Exit Code:    137",
        "k8s.container_exit",
        {"exit_code": 137, "signal": 9, "nature": "symptom", "suggests": "rank-died"},
    ),
    (
        "      Exit Code:    143",
        "k8s.container_exit",
        {"signal": 15, "nature": "consequence"},
    ),
    (
        "      Exit Code:    0",
        "k8s.container_exit",
        {"exit_code": 0, "nature": "info"},
    ),
    (
        '{"terminated":{"exitCode":139,"finishedAt":"x"}}',
        "k8s.container_exit",
        {"exit_code": 139, "signal": 11},
    ),
    (
        "Back-off restarting failed container trainer in pod x",
        "k8s.crash_loop",
        {"nature": "consequence"},
    ),
    (
        "trainer-0   0/1   CrashLoopBackOff   5 (2m ago)   12m",
        "k8s.crash_loop",
        {"nature": "consequence"},
    ),
    (
        ("Normal  Killing  2s  kubelet  Container trainer failed liveness probe, will be restarted"),
        "k8s.liveness_failed",
        {"container": "trainer"},
    ),
    (
        (
            "Message: The node was low on resource: ephemeral-storage. Threshold quantity: "
            "10Gi, available: 9Gi."
        ),
        "k8s.evicted",
        {"resource": "ephemeral-storage", "nature": "cause", "cause": "disk-full"},
    ),
    (
        "The node was low on resource: memory.",
        "k8s.evicted",
        {"resource": "memory", "cause": "oom-host"},
    ),
    (
        "The node was low on resource: pids.",
        "k8s.evicted",
        {"resource": "pids", "nature": "symptom"},
    ),
    (
        "The node had condition: [DiskPressure]. ",
        "k8s.evicted",
        {"condition": "DiskPressure", "cause": "disk-full"},
    ),
    (
        "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
        "k8s.evicted",
        {"cause": "disk-full"},
    ),
    (
        'Container trainer exceeded its local ephemeral storage limit "10Gi".',
        "k8s.evicted",
        {"container": "trainer", "cause": "disk-full"},
    ),
    (
        'Usage of EmptyDir volume "dshm" exceeds the limit "1Gi".',
        "k8s.evicted",
        {"volume": "dshm", "nature": "symptom", "suggests": "shm-limit"},
    ),
    (
        "Reason:           Evicted",
        "k8s.evicted",
        {"nature": "symptom"},
    ),
    (
        "Normal  Preempted  10s  default-scheduler  Preempted by pod 1234 on node gpu-03",
        "k8s.preempted",
        {"nature": "cause", "cause": "preempted"},
    ),
    (
        "Preempted by a pod on node gpu-03",
        "k8s.preempted",
        {"cause": "preempted"},
    ),
    (
        "reason: PreemptionByScheduler",
        "k8s.preempted",
        {"reason": "PreemptionByScheduler"},
    ),
    (
        '"reason":"EvictionByEvictionAPI"',
        "k8s.preempted",
        {"reason": "EvictionByEvictionAPI"},
    ),
    (
        (
            "Preempted to accommodate a workload (UID: 5c02, JobUID: 7d11) due to "
            "prioritization in the ClusterQueue"
        ),
        "k8s.preempted",
        {"cause": "preempted"},
    ),
    (
        "Message: Pod was terminated in response to imminent node shutdown.",
        "k8s.preempted",
        {"cause": "preempted"},
    ),
    (
        "Job was active longer than specified deadline",
        "k8s.deadline",
        {"cause": "preempted"},
    ),
    (
        (
            "Warning  FailedScheduling  2m  default-scheduler  0/4 nodes are available: 4 "
            "Insufficient nvidia.com/gpu. preemption: 0/4 nodes are available"
        ),
        "k8s.failed_scheduling",
        {"nnodes": 4, "resource": "nvidia.com/gpu", "suggests": "rendezvous"},
    ),
    (
        'Failed to pull image "registry/trainer:1": not found',
        "k8s.image_pull_failed",
        {"image": "registry/trainer:1"},
    ),
    (
        (
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot "
            "allocate unhealthy devices nvidia.com/gpu, which is unexpected"
        ),
        "k8s.admission_rejected",
        {"nature": "symptom", "suggests": "gpu-not-visible"},
    ),
    (
        "trainer-0   0/1   UnexpectedAdmissionError   0   5s",
        "k8s.admission_rejected",
        {"nature": "symptom"},
    ),
    (
        "Warning  NodeNotReady  2m  node-controller  Node is not ready",
        "k8s.node_lost",
        {"reason": "NodeNotReady"},
    ),
    (
        "Reason: NodeLost",
        "k8s.node_lost",
        {"suggests": "rank-died"},
    ),
    (
        "Normal  TaintManagerEviction  1m  taint-eviction-controller  Marking",
        "k8s.node_lost",
        {"nature": "symptom"},
    ),
    (
        "reason: DeletionByTaintManager",
        "k8s.node_lost",
        {"suggests": "rank-died"},
    ),
    (
        "Reason:  NodeShutdown",
        "k8s.node_lost",
        {"suggests": "preempted"},
    ),
    (
        '"reason":"TerminationByKubelet"',
        "k8s.node_lost",
        {"suggests": "preempted"},
    ),
]

FRAMEWORKS: list[Row] = [
    (
        "run.sh: line 12: 31337 Killed                  python train.py",
        "launch.shell_signal",
        {"line": 12, "pid": 31337, "signal": 9, "suggests": "rank-died"},
    ),
    (
        (
            "/var/spool/slurmd/job00214/slurm_script: line 28:  9022 Segmentation fault      "
            "(core dumped) python3 main.py"
        ),
        "launch.shell_signal",
        {"line": 28, "pid": 9022, "signal": 11},
    ),
    (
        "Killed",
        "launch.shell_signal",
        {"signal": 9},
    ),
    (
        "Terminated",
        "launch.shell_signal",
        {"signal": 15, "nature": "consequence"},
    ),
    (
        "Aborted (core dumped)",
        "launch.shell_signal",
        {"signal": 6, "nature": "symptom"},
    ),
    (
        "Segmentation fault (core dumped)",
        "launch.shell_signal",
        {"signal": 11, "suggests": "rank-died"},
    ),
    (
        "Bus error (core dumped)",
        "launch.shell_signal",
        {"signal": 7},
    ),
    (
        "Illegal instruction",
        "launch.shell_signal",
        {"signal": 4},
    ),
    (
        "Floating point exception",
        "launch.shell_signal",
        {"signal": 8},
    ),
    (
        "zsh: segmentation fault (core dumped)  python train.py",
        "launch.shell_signal",
        {"signal": 11},
    ),
    (
        "pdsh@head: node-02: ssh exited with exit code 1",
        "launch.remote_exit",
        {"host": "node-02", "exit_code": 1, "nature": "consequence"},
    ),
    (
        "pdsh@head: node-02: ssh exited with exit code 255",
        "launch.remote_exit",
        {"nature": "symptom"},
    ),
    (
        "Killing subprocess 4242",
        "ds.kill",
        {"pid": 4242, "nature": "consequence"},
    ),
    (
        ("[2024-05-26 12:00:00,123] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4242"),
        "ds.kill",
        {"pid": 4242, "nature": "consequence"},
    ),
    (
        "['/venv/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9",
        "ds.child_exit",
        {"exit_code": -9, "signal": 9, "suggests": "rank-died"},
    ),
    (
        "['/venv/bin/python', '-u', 'train.py'] exits with return code = 1",
        "ds.child_exit",
        {"nature": "consequence"},
    ),
    (
        "Process 4242 exits successfully.",
        "ds.exit_ok",
        {"pid": 4242, "nature": "info"},
    ),
    (
        (
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4294967296, "
            "reducing to 2147483648"
        ),
        "ds.overflow",
        {"rank": 0, "nature": "noise"},
    ),
    (
        ("Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
        "ds.loss_scale_minimum",
        {"nature": "cause", "cause": "nan"},
    ),
    (
        "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8",
        "pl.init",
        {"rank": 3, "world_size": 8},
    ),
    (
        "All distributed processes registered. Starting with 8 processes",
        "pl.all_registered",
        {"world_size": 8},
    ),
    (
        (
            "[rank: 0] Child process with PID 31337 terminated with code -9. Forcefully "
            "terminating all other processes to avoid zombies 🧟"
        ),
        "pl.child_exit",
        {"pid": 31337, "exit_code": -9, "signal": 9},
    ),
    (
        "[rank: 3] Received SIGTERM: 15",
        "pl.received_signal",
        {"rank": 3, "signal": 15, "nature": "symptom"},
    ),
    (
        (
            "subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' "
            "returned non-zero exit status 1."
        ),
        "acc.child_exit",
        {"exit_code": 1, "nature": "consequence"},
    ),
    (
        (
            "subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' died "
            "with <Signals.SIGKILL: 9>."
        ),
        "acc.child_exit",
        {"signal": 9, "nature": "consequence"},
    ),
    (
        (
            "accelerate.utils.operations.DistributedOperationException: Cannot apply desired "
            "operation due to shape mismatches. All shapes across devices must be valid."
        ),
        "acc.shape_mismatch",
        {"nature": "cause", "cause": "collective-mismatch"},
    ),
]

ROWS: list[Row] = TORCHRUN + RAY + SLURM + MPI + KUBERNETES + FRAMEWORKS

# Lines that hold a word or a shape of the rows above and are no such event.
NEIGHBOURS: list[str] = [
    "Caught signal 10 (SIGUSR1), will save and stop",
    "",
    "killed the background thread, restarting loader",
    "step 12: Killed 3 stale workers",
    "Killed by early stopping",
    "Terminated early: loss is nan",
    "exit code: 137",
    "Failures:",
    "Root Cause (first observed failure):",
    "train.py FAILED",
    "    raise ChildFailedError(",
    "from torch.distributed.elastic.multiprocessing.errors import ChildFailedError",
    "    raise RendezvousTimeoutError",
    ('    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)'),
    "failed (exitcode: None) while reading",
    "Sending process 12 of 40 to the pool",
    "Worker group size 4, 3 attempts left",
    "rank 0: worker 3 exited with exit code",
    "data: tasks 3: done",
    "job: task 3: Killed 2 of 4 trials",
    "node-03: tasks 0-3: Finished",
    "CANCELLED AT user request",
    "12 TIMEOUT while waiting for the loader",
    "2026 CANCELLED experiment 7",
    "eval mpirun noticed that rank 3 is slow",
    "Signal: strong (11)x",
    "pod was not OOMKilled this time, check OOMKilled in the docs",
    "metrics exit_code_rate: 0.1 Exit Code: see table",
    "config: restart_policy NodeLost handling enabled",
    "nodes are available: 8",
    "world_rank=0 starting",
    "[Rank 3] no error",
    "The worker died of boredom",
    "0 nodes has been marked dead because of tests",
    "Received SIGTERM handler installed",
    "Child process with PID 12 started",
    "loss overflow! Rank of matrix dropped",
    '  File "/job/launch.py", line 12, in main',
]
