/** The listening sockets that one process leaves to its successor; see runtime/main/handover. */

/** A TCP listener: all its sockets, one for each thread of the process that bound them. */
export interface BequeathedListener {
	/** `tcp/127.0.0.1:8080`; see `PlannedSocket.key`. */
	readonly key: string;
	/** The bound port. */
	readonly port: number;
	readonly descriptors: readonly number[];
}

/** A socket that the main thread holds. */
export interface BequeathedSocket {
	/** `unix//run/svc.sock` or `fd/3`. */
	readonly key: string;
	readonly descriptor: number;
	/** The file of a Unix socket; `inode` is a decimal number, because JSON has no large integers. */
	readonly file?: { readonly path: string; readonly inode: string; readonly mode: number };
}

/** A socket that a service manager passed to the first of the processes. */
export interface BequeathedPassed {
	/** The number by which configurations call it. */
	readonly number: number;
	readonly name: string;
	readonly descriptor: number;
}

/** All sockets of a server. */
export interface BequeathedSockets {
	readonly listeners: readonly BequeathedListener[];
	readonly held: readonly BequeathedSocket[];
	readonly passed: readonly BequeathedPassed[];
}
