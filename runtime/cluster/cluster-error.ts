/** The errors of a cluster of machines that share a Redis server. */

/** The error for a failed Redis command. The message is a clause without a period that contains no value and no credential. */
export class ClusterError extends Error {
	/** `cluster/unavailable`: no answer in time or no connection. `cluster/refused`: Redis answered with an error. */
	readonly code: 'cluster/unavailable' | 'cluster/refused';
	/** The first word of Redis' error, for example `OOM`. */
	readonly reply: string | undefined;
	/**
	 * `host:port` of the node to which Redis Cluster redirected the command, because that node has the key. An empty host means the
	 * host of the node that received the command.
	 */
	readonly redirectAddress: string | undefined;

	constructor(code: ClusterError['code'], message: string, reply?: string, redirectAddress?: string) {
		super(message);
		this.name = 'ClusterError';
		this.code = code;
		this.reply = reply;
		this.redirectAddress = redirectAddress;
	}
}

/**
 * The error for a purge that took effect on this machine only. The other machines receive the purge once Redis is available
 * again, if this process is still running then.
 */
export class PurgeNotShared extends Error {
	constructor(cause: ClusterError) {
		super(`The responses were purged on this machine, but the other machines do not know: ${cause.message}.`, {
			cause,
		});
		this.name = 'PurgeNotShared';
	}
}
