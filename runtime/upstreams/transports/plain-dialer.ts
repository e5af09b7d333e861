/** Connections over TCP and unix sockets with nothing before the protocol's first byte. */
import { connect, type Socket } from 'node:net';
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import { errorText, LONGEST_TIMER, Wire, type WireHolder } from '../../protocols/wire.ts';
import type { Dialer, Dialing, DialOwner } from './dialer.ts';

/** Where to connect. */
export type ClientTarget = { readonly host: string; readonly port: number } | { readonly path: string };

/** Settings of connecting. */
export interface DialOptions {
	/** Milliseconds; 0 for no bound. */
	readonly connectTimeout: number;
	/** What a socket reads into. It may be shared by sockets of a thread: bytes are used up before the next read. */
	readonly readBuffer: () => Buffer;
}

/** Dials one address. */
export class PlainDialer implements Dialer {
	readonly #target: ClientTarget;
	readonly #options: DialOptions;

	constructor(target: ClientTarget, options: DialOptions) {
		this.#target = target;
		this.#options = options;
	}

	dial(owner: DialOwner): Dialing {
		return new PlainDialing(this.#target, this.#options, owner);
	}
}

class PlainDialing implements Dialing, WireHolder {
	readonly #owner: DialOwner;
	readonly #socket: Socket;
	#timer: NodeJS.Timeout | undefined = undefined;
	#over = false;

	constructor(target: ClientTarget, options: DialOptions, owner: DialOwner) {
		this.#owner = owner;
		const wire = new Wire(this);
		const onread = wire.onread(options.readBuffer());
		const socket =
			'path' in target
				? connect({ path: target.path, allowHalfOpen: true, onread })
				: connect({ ...target, allowHalfOpen: true, noDelay: true, keepAlive: true, onread });
		this.#socket = socket;
		wire.attach(socket, false);
		socket.on('connect', () => {
			if (!this.#finish()) return;
			this.#owner.dialed(wire);
		});
		if (options.connectTimeout > 0) {
			this.#timer = setTimeout(
				() => {
					this.#fail(new UpstreamError('timeout', 'connecting took too long', undefined, true));
				},
				Math.min(options.connectTimeout, LONGEST_TIMER),
			);
		}
	}

	abandon(): void {
		if (this.#finish()) this.#socket.destroy();
	}

	received(): boolean {
		return false;
	}

	ended(): void {}

	closed(error: Error | undefined): void {
		this.#fail(new UpstreamError('connect', error ? errorText(error) : 'the connection was closed', error));
	}

	/** True the first time. */
	#finish(): boolean {
		if (this.#over) return false;
		this.#over = true;
		clearTimeout(this.#timer);
		return true;
	}

	#fail(error: UpstreamError): void {
		if (!this.#finish()) return;
		this.#socket.destroy();
		this.#owner.dialFailed(error);
	}
}
