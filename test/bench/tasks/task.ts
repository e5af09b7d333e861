/** A row of the bench: servers that do the same work. */
import type { HandshakeLoad, Http3Load, MessageLoad, RequestLoad, StreamLoad } from '../load.ts';
import type { ServerName } from '../servers.ts';

/**
 * Ports of the backends: nginx, which serves files over three transports, a Node server for tasks that need a program, and
 * redis-server.
 */
export interface Backends {
	readonly files: number;
	/** Port of the files over TLS, for HTTP/1.1 only. */
	readonly secure: number;
	/** Port of the files over HTTP/2 without TLS. */
	readonly h2c: number;
	readonly program: number;
	/** Port of a redis-server, which runs only if a contender needs it. */
	readonly redis: number;
}

/** A server that is measured in a row, with its configuration. */
export interface Contender {
	/** Name of the server in the row; the default is the server's name. */
	readonly label?: string;
	readonly server: ServerName;
	/** Cores that the server may use; the default is the bench's server core. */
	readonly cores?: string;
	/**
	 * Cores of the load generator, which has one thread and the load's connections on each; the default is the bench's
	 * load core.
	 */
	readonly loadCores?: readonly number[];
	/** True if a redis-server must run. Without the program, the contender is skipped. */
	readonly needsRedis?: true;
	/** Returns the text of the server's configuration. */
	readonly configuration: (port: number, backends: Backends) => string;
}

/**
 * Compares the CPU time per request of several servers for the same work. The first contender is compared with each of the
 * others.
 */
export interface LoadTask {
	readonly name: string;
	readonly load: RequestLoad | MessageLoad | StreamLoad | HandshakeLoad | Http3Load;
	readonly contenders: readonly Contender[];
	/** Number of seconds of load before the measurement, while code is still being compiled; the default is 3. */
	readonly warmUp?: number;
	/** Upper bounds of the ratio between our value and another contender's, by the label of that contender. */
	readonly bounds?: { readonly [label: string]: number };
}

/** Compares the memory per idle keep-alive connection. */
export interface IdleTask {
	readonly name: string;
	readonly idle: number;
	/** The protocol of the connections; HTTP/1.1 by default. */
	readonly protocol?: 'http3';
	/** Upper bound of our own server's value, in KiB. */
	readonly limit?: number;
	readonly contenders: readonly Contender[];
	readonly bounds?: { readonly [label: string]: number };
}

/**
 * What a row about startup compares: milliseconds from process start to the first response (`time`), or processor milliseconds
 * until then; milliseconds of a configuration check; or mebibytes of resident memory after the start.
 */
export type StartMeasure = 'time' | 'processor time' | 'validate' | 'memory' | 'memory per further thread';

/** A server in the rows about startup. `node` runs its configuration as a program. */
export interface StartContender {
	readonly label?: string;
	readonly server: 'svc' | 'caddy' | 'node';
	readonly configuration: (port: number, threads: number) => string;
}

/**
 * Compares servers at startup. The minima of ten rounds are compared, because other load on the machine can only
 * increase a value.
 */
export interface StartTask {
	readonly name: string;
	readonly start: StartMeasure;
	readonly contenders: readonly StartContender[];
	readonly bounds?: { readonly [label: string]: number };
	/** Upper bound of our own server's value. */
	readonly limit?: number;
}

export type Task = LoadTask | IdleTask | StartTask;
