/** Settings of the option `cluster`: the Redis server that several machines share. */

/** TLS settings of the connection to Redis. */
export interface ClusterTls {
	/** PEM file of the certificates to trust, instead of the system's certificates. */
	readonly ca?: string;
	/** The name to verify, and to send as SNI, instead of the host. */
	readonly server_name?: string;
	/** PEM files of the client certificate. */
	readonly client?: { readonly cert: string; readonly key: string };
}

/** `settings.cluster` in documents. */
export interface ClusterSettings {
	/** The address of the server, `host:port`. */
	readonly address: string;
	/** The TLS settings; present if the connection uses TLS. */
	readonly tls?: ClusterTls;
	/** Name of the ACL user. Default: the user `default` of Redis. */
	readonly user?: string;
	/** The password of the user. Secret. */
	readonly password?: string;
	readonly database?: number;
	/** Prefix of all keys in Redis. Default {@link DEFAULT_CLUSTER_PREFIX}. */
	readonly prefix?: string;
	/** Maximum milliseconds that a request may wait for Redis. Default {@link DEFAULT_CLUSTER_TIMEOUT_MS}. */
	readonly timeout?: number;
	/** Keys of 32 bytes each, in base64. Values are encrypted with the first key, and can be decrypted with any of them. Secret. */
	readonly keys?: readonly string[];
}

export const DEFAULT_CLUSTER_PREFIX = 'svc';
/** Default of `timeout`, in milliseconds. */
export const DEFAULT_CLUSTER_TIMEOUT_MS = 200;
/** Matches 32 bytes in base64. */
export const CLUSTER_KEY_PATTERN = '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$';
