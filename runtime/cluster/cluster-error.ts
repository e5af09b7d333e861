/** Errors of a cluster. */

/** A command to Redis failed. The message is a clause without a period that contains no value and no credential. */
export class ClusterError extends Error {
	/** `cluster/unavailable`: no answer in time or no connection. `cluster/refused`: Redis answered with an error. */
	readonly code: 'cluster/unavailable' | 'cluster/refused';
	/** The first word of Redis' error, for example `OOM`. */
	readonly reply: string | undefined;
	/**
	 * `host:port` of the node of a Redis Cluster that has the key, if another node was asked. If the host is empty, it is the host
	 * of the node that was asked.
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
 * A purge took effect on this machine only. The other machines will get it when Redis is available again, if this process still
 * runs.
 */
export class PurgeNotShared extends Error {
	constructor(cause: ClusterError) {
		super(`The responses were purged on this machine, but the other machines do not know: ${cause.message}.`, {
			cause,
		});
		this.name = 'PurgeNotShared';
	}
}
