/** Options for starting a server, and the description of its sockets. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { PassedSockets } from '../listeners/passed-sockets.ts';
import type { StandardWriters } from '../logs/log-sinks.ts';
import type { HandoverStep, Inheritance } from './handover/handover-protocol.ts';
import type { Runtime } from './runtime.ts';

export interface RuntimeOptions {
	/** The configuration. Without one, only the Admin API is started, and the first load may add plaintext HTTP listeners. */
	readonly input?: ConfigInput | undefined;
	/** Base folder for relative paths of a configuration that is not a file; defaults to the process's working directory. */
	readonly workingDirectory?: string | undefined;
	/** Environment variables that configurations see; defaults to the process's. */
	readonly environment?: { readonly [name: string]: string | undefined } | undefined;
	/** Sockets passed by a service manager. */
	readonly passed?: PassedSockets | undefined;
	/** The sockets and keys left by the predecessor. If set, the server accepts no connections until {@link Runtime.accept}. */
	readonly inheritance?: Inheritance | undefined;
	/** Called when this process, as a successor, begins a step of the handover. */
	readonly onStep?: ((step: HandoverStep) => void) | undefined;
	/** Number of worker threads; overrides the setting `threads`. */
	readonly threads?: number | undefined;
	/** Sets the process log to level debug, overriding the configuration. */
	readonly verbose?: boolean | undefined;
	/**
	 * Called before any address is bound. The server already has the settings of its configuration, but is not ready: loads and
	 * reads of the configuration wait until it serves. If the callback rejects, startRuntime rejects with the same reason.
	 */
	readonly beforeListening?: ((runtime: Runtime) => Promise<void>) | undefined;
	/** Returns the version of this build, for metrics. Called when metrics are first read. */
	readonly version?: (() => string) | undefined;
	/** Replaces standard output and standard error as log outputs. */
	readonly writers?: StandardWriters | undefined;
}

export interface BoundListener {
	readonly key: string;
	/** The IP address; '' for every interface. */
	readonly address: string;
	readonly port: number;
	readonly scheme: 'http' | 'https';
}
