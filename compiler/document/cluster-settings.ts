/** Settings of the option `cluster`: the Redis server, or servers, that several machines share. */

/** TLS settings of the connection to Redis. */
export interface ClusterTls {
	/** PEM file of the certificates to trust, instead of the system's certificates. */
	readonly ca?: string;
	/** The name to verify, and to send as SNI, instead of the host. */
	readonly server_name?: string;
	/** PEM files of the client certificate. */
	readonly client?: { readonly cert: string; readonly key: string };
}

/** How to ask Sentinels which server is the master. */
export interface ClusterSentinel {
	/** The name under which the Sentinels monitor the master. */
	readonly master: string;
	/** Name of the ACL user at the Sentinels. */
	readonly user?: string;
	/** Password at the Sentinels. Secret. */
	readonly password?: string;
}

/** `settings.cluster` in documents. */
export interface ClusterSettings {
	/** The address, `host:port`, of the server, of the first Sentinel, or of the first node of a Redis Cluster. */
	readonly address: string;
	/** The addresses of the other Sentinels or nodes. */
	readonly other_addresses?: readonly string[];
	/** Present if the addresses belong to Sentinels. */
	readonly sentinel?: ClusterSentinel;
	/** Present if the addresses belong to nodes of a Redis Cluster. */
	readonly mode?: 'cluster';
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
	/**
	 * Ed25519 public keys of those who may publish configurations, as DER in base64. If undefined, holders of a key in `keys` may
	 * publish.
	 */
	readonly publishers?: readonly string[];
}

export const DEFAULT_CLUSTER_PREFIX = 'svc';
/** Default of `timeout`, in milliseconds. */
export const DEFAULT_CLUSTER_TIMEOUT_MS = 200;
/** Matches the DER of an Ed25519 public key in base64 (RFC 8410 §4). */
export const PUBLISHER_PATTERN = '^MCowBQYDK2VwAyEA[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$';
/** Matches 32 bytes in base64. */
export const CLUSTER_KEY_PATTERN = '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$';
