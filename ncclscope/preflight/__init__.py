"""The check of one node before a job: can NCCL run here, and will a failure be readable."""
