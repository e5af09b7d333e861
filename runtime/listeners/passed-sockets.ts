/** The sockets that a service manager has passed to the process (sd_listen_fds(3)): which numbers they have, and their names. */

/** The first descriptor that is passed. */
const FIRST = 3;
/** Sockets that are believed to have been passed. */
const MOST = 1024;

/** The variables that tell of them. */
const VARIABLES = ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'] as const;

/** A socket that was not passed; the message is the end of a sentence. */
export class NotPassed extends Error {
	readonly code = 'ENOTPASSED';
}

/** What was passed. */
export class PassedSockets {
	/** Names by descriptor, from 3 on; undefined when no service manager has passed any. */
	readonly #names: readonly string[] | undefined;

	/** `names` as they were passed, the first for descriptor 3. */
	constructor(names: readonly string[] | undefined) {
		this.#names = names;
	}

	/** The descriptor that `fd/…` stands for: a number, or a name. Throws NotPassed. */
	descriptorOf(text: string): number {
		const names = this.#names;
		if (/^\d+$/.test(text)) {
			const descriptor = Number(text);
			if (names === undefined || names[descriptor - FIRST] !== undefined) return descriptor;
			throw new NotPassed(`the service manager did not pass this descriptor, but ${told(names)}`);
		}
		if (names === undefined) throw new NotPassed('no service manager has passed sockets, with names or without');
		const descriptors = names.flatMap((name, at) => (name === text ? [FIRST + at] : []));
		if (descriptors.length === 1) return descriptors[0]!;
		if (descriptors.length === 0) {
			throw new NotPassed(`the service manager passed no socket of this name, but ${told(names)}`);
		}
		const numbers = descriptors.map(descriptor => `fd/${descriptor}`).join(' and ');
		throw new NotPassed(`${descriptors.length} sockets were passed with this name: write ${numbers}`);
	}
}

/**
 * Reads what was passed and takes the variables out of the environment: a child must not take the sockets for its own.
 * They say nothing to a process with another number than the one that they name.
 */
export function takePassedSockets(environment: { [name: string]: string | undefined }, pid: number): PassedSockets {
	const [owner, count, names = ''] = VARIABLES.map(name => environment[name]);
	for (const name of VARIABLES) delete environment[name];
	if (owner !== String(pid) || !/^\d{1,4}$/.test(count ?? '')) return new PassedSockets(undefined);
	const known = names.split(':');
	const passed = Array.from({ length: Math.min(Number(count), MOST) }, (_, at) => known[at] || 'unknown');
	return new PassedSockets(passed);
}

function told(names: readonly string[]): string {
	if (names.length === 0) return 'none';
	return names.map((name, at) => `fd/${FIRST + at} (${name})`).join(', ');
}
