/** Sockets that a service manager passes to the process (sd_listen_fds(3)): their descriptors and names. */

import type { BequeathedPassedSocket } from '../sockets/bequeathed-sockets.ts';
import { socketAddresses } from './socket-addresses.ts';

const FIRST_PASSED_DESCRIPTOR = 3;
/** Maximum number of sockets accepted. */
const MAX_PASSED_SOCKETS = 1024;

/** The environment variables that describe the passed sockets. */
const LISTEN_VARIABLES = ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'] as const;

/** The error for a socket that was not passed to the process. Its message is the reason in a {@link ListenError}. */
export class SocketNotPassed extends Error {
	readonly code = 'ENOTPASSED';
}

/** The sockets that a service manager has passed to the process. */
export class PassedSockets {
	/**
	 * The sockets' names, in the order of their descriptors, which begin at 3. Undefined if no service manager has passed sockets.
	 */
	readonly #socketNames: readonly string[] | undefined;

	/** Only in a successor: the current descriptor of each passed socket, by the descriptor that it had in the first process. */
	readonly #newDescriptorByOld: ReadonlyMap<number, number> | undefined;

	/** The sockets' addresses by descriptor; undefined until they are needed for the first time. */
	#cachedAddresses: ReadonlyMap<number, string> | undefined;

	/** @param names Names in the order in which the sockets were passed. The first one belongs to descriptor 3. */
	constructor(names: readonly string[] | undefined, newDescriptorByOld?: ReadonlyMap<number, number>) {
		this.#socketNames = names;
		this.#newDescriptorByOld = newDescriptorByOld;
	}

	get hasAny(): boolean {
		return (this.#socketNames?.length ?? 0) > 0;
	}

	/** Returns the passed sockets as a successor inherits them. */
	toBequeathedSockets(): BequeathedPassedSocket[] {
		return (this.#socketNames ?? []).map((name, at) => {
			const number = FIRST_PASSED_DESCRIPTOR + at;
			return { number, name, descriptor: this.#newDescriptorByOld?.get(number) ?? number };
		});
	}

	/**
	 * Returns the descriptor of the socket with an address, as {@link socketAddresses} writes it, or undefined if no socket has it.
	 */
	descriptorAt(address: string): number | undefined {
		for (const [descriptor, socketAddress] of this.#addressByDescriptor)
			if (socketAddress === address) return descriptor;
		return undefined;
	}

	/** Returns the hosts of the TCP sockets that listen on the port. */
	hostsAt(port: number): string[] {
		const portSuffix = `:${port}`;
		return [...this.#addressByDescriptor.values()]
			.filter(at => at.endsWith(portSuffix))
			.map(at => at.slice(0, -portSuffix.length));
	}

	get #addressByDescriptor(): ReadonlyMap<number, string> {
		this.#cachedAddresses ??= socketAddresses(this.toBequeathedSockets().map(({ descriptor }) => descriptor));
		return this.#cachedAddresses;
	}

	/**
	 * Returns the descriptor of a socket that a configuration calls `fd/NUMBER` or `fd/NAME`; `nameOrNumber` is the part after the
	 * slash. Throws {@link SocketNotPassed}.
	 */
	descriptorOf(nameOrNumber: string): number {
		const names = this.#socketNames;
		if (/^\d+$/.test(nameOrNumber)) {
			const descriptor = Number(nameOrNumber);
			if (names === undefined || names[descriptor - FIRST_PASSED_DESCRIPTOR] !== undefined) {
				return this.#newDescriptorByOld?.get(descriptor) ?? descriptor;
			}
			throw new SocketNotPassed(`the service manager did not pass this descriptor, but ${describeSockets(names)}`);
		}
		if (names === undefined) throw new SocketNotPassed('no service manager has passed any sockets');
		const descriptors = names.flatMap((name, at) => (name === nameOrNumber ? [FIRST_PASSED_DESCRIPTOR + at] : []));
		if (descriptors.length === 1) return this.#newDescriptorByOld?.get(descriptors[0]!) ?? descriptors[0]!;
		if (descriptors.length === 0) {
			throw new SocketNotPassed(
				`the service manager did not pass a socket with this name, but ${describeSockets(names)}`,
			);
		}
		const descriptorList = descriptors.map(descriptor => `fd/${descriptor}`).join(' and ');
		throw new SocketNotPassed(`${descriptors.length} sockets were passed with this name: write ${descriptorList}`);
	}
}

/** Returns the sockets that a service manager passed to the predecessor, or to one of its predecessors. */
export function inheritedPassedSockets(passedSockets: readonly BequeathedPassedSocket[]): PassedSockets {
	if (passedSockets.length === 0) return new PassedSockets(undefined);
	const names = passedSockets.map(({ name }) => name);
	return new PassedSockets(names, new Map(passedSockets.map(({ number, descriptor }) => [number, descriptor])));
}

/**
 * Reads which sockets were passed, and removes the variables from the environment, so that child processes do not mistake the
 * sockets for theirs. The variables are ignored if they name another process.
 */
export function takePassedSockets(environment: { [name: string]: string | undefined }, pid: number): PassedSockets {
	const [ownerPid, countText, names = ''] = LISTEN_VARIABLES.map(name => environment[name]);
	for (const name of LISTEN_VARIABLES) delete environment[name];
	if (ownerPid !== String(pid) || !/^\d{1,4}$/.test(countText ?? '')) return new PassedSockets(undefined);
	const nameList = names.split(':');
	const socketNames = Array.from(
		{ length: Math.min(Number(countText), MAX_PASSED_SOCKETS) },
		(_, at) => nameList[at] || 'unknown',
	);
	return new PassedSockets(socketNames);
}

function describeSockets(names: readonly string[]): string {
	if (names.length === 0) return 'none';
	return names.map((name, at) => `fd/${FIRST_PASSED_DESCRIPTOR + at} (${name})`).join(', ');
}
