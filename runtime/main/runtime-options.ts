/** How a server is started, and what it tells of its sockets. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { PassedSockets } from '../listeners/passed-sockets.ts';
import type { StandardWriters } from '../logs/log-sinks.ts';
import type { Runtime } from './runtime.ts';

/** How a server is started. */
export interface RuntimeOptions {
	/** The configuration. Without one only the Admin API exists, and the first load may add plaintext HTTP listeners. */
	readonly input?: ConfigInput | undefined;
	/** Folder for relative paths of a configuration without a file of its own; the process's if left out. */
	readonly workingDirectory?: string | undefined;
	/** Environment that configurations see; the process's if left out. */
	readonly environment?: { readonly [name: string]: string | undefined } | undefined;
	/** Sockets that a service manager has passed. */
	readonly passed?: PassedSockets | undefined;
	/** Data-plane threads, instead of the setting `threads`. */
	readonly threads?: number | undefined;
	/** Level debug for the process log, whatever the configuration says. */
	readonly verbose?: boolean | undefined;
	/**
	 * Called with the server, which has the settings of its configuration and is not ready, before any address is bound. Loads
	 * and reads of the configuration wait until it serves. What it rejects with ends the start, and is what startRuntime
	 * rejects with.
	 */
	readonly beforeListening?: ((runtime: Runtime) => Promise<void>) | undefined;
	/** The version of this build, for metrics. Asked for when they are read first. */
	readonly version?: (() => string) | undefined;
	/** Stand in for standard output and standard error as log outputs. */
	readonly writers?: StandardWriters | undefined;
}

/** A bound address. */
export interface BoundListener {
	readonly key: string;
	/** '' is every interface. */
	readonly address: string;
	readonly port: number;
	readonly scheme: 'http' | 'https';
}
