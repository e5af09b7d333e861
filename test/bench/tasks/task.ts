/** A row of the bench: servers that are given the same work. */
import type { HandshakeLoad, MessageLoad, RequestLoad, StreamLoad } from '../load.ts';
import type { ServerName } from '../servers.ts';

/** Ports of what proxies talk to: nginx with files, in three ways, and Node's server for what needs a program. */
export interface Backends {
	readonly files: number;
	/** The same over TLS, HTTP/1.1 only. */
	readonly secure: number;
	/** The same in HTTP/2 without TLS. */
	readonly h2c: number;
	readonly program: number;
}

/** A server of a row. */
export interface Contender {
	/** What the row calls it; the server's name if left out. */
	readonly label?: string;
	readonly server: ServerName;
	/** Cores it may use; the bench's server core if left out. */
	readonly cores?: string;
	/** Cores of the load generator, which has a thread and the load's connections for each; the bench's if left out. */
	readonly loadCores?: readonly number[];
	/** Text of its configuration. */
	readonly configuration: (port: number, backends: Backends) => string;
}

/** Processor time per request of several servers at the same work. The first contender is compared with the others. */
export interface LoadTask {
	readonly name: string;
	readonly load: RequestLoad | MessageLoad | StreamLoad | HandshakeLoad;
	readonly contenders: readonly Contender[];
	/** Seconds of load before anything is measured, while code is still compiled; 3 if left out. */
	readonly warmUp?: number;
	/** What our ratio should stay under, by the label of the other. */
	readonly bounds?: { readonly [label: string]: number };
}

/** Memory that a server needs for each of many idle keep-alive connections. */
export interface IdleTask {
	readonly name: string;
	readonly idle: number;
	readonly contenders: readonly Contender[];
	readonly bounds?: { readonly [label: string]: number };
}

/** Time from the start of a process to its first answer. */
export interface StartTask {
	readonly name: string;
	readonly start: true;
	readonly contenders: readonly Contender[];
	readonly bounds?: { readonly [label: string]: number };
}

/** Any row. */
export type Task = LoadTask | IdleTask | StartTask;
