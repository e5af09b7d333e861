/** Reads a connection's PROXY header before anything else, and decides whether to trust it. */
import type { Socket } from 'node:net';
import type { ProxyPolicy, ProxyProtocolWrapper } from '../../compiler/document/server-settings.ts';
import { IpRanges } from '../../compiler/exchange/ip-ranges.ts';
import { unmapAddress } from '../protocols/http1/socket-info.ts';
import type { ConnectionPeer } from '../protocols/protocol.ts';
import { parseProxyHeader } from './proxy-header.ts';

const DEFAULT_HEADER_TIMEOUT_MS = 5000;

/** Called with the reason for closing a connection: `bad_proxy_header`, `proxy_header_timeout`. */
export type ProxyRefused = (reason: string) => void;

export class ProxyReader {
	readonly #timeoutMs: number;
	readonly #allowedRanges: IpRanges | undefined;
	readonly #deniedRanges: IpRanges | undefined;
	readonly #fallbackPolicy: ProxyPolicy;
	readonly #onRefused: ProxyRefused;

	/** Throws RangeError for an invalid IP range. */
	constructor(settings: ProxyProtocolWrapper, onRefused: ProxyRefused) {
		const { timeout, allow, deny, fallback_policy } = settings;
		this.#timeoutMs = timeout ?? DEFAULT_HEADER_TIMEOUT_MS;
		this.#allowedRanges = allow && new IpRanges(allow);
		this.#deniedRanges = deny && new IpRanges(deny);
		this.#fallbackPolicy = fallback_policy ?? (allow || deny ? 'ignore' : 'use');
		this.#onRefused = onRefused;
	}

	/**
	 * Reads the header and calls `onAccepted` with the peer that it names. Bytes after the header are put back into the stream
	 * first. `isUnix` is true for a listener on a Unix socket, whose clients have no address.
	 */
	read(socket: Socket, isUnix: boolean, onAccepted: (peer: ConnectionPeer | undefined) => void): void {
		const { remoteAddress } = socket;
		// The connection was reset before it was accepted. Its address is unknown, so it cannot be compared with the trusted and
		// denied IP ranges.
		if (remoteAddress === undefined && !isUnix) {
			socket.on('error', ignoreError);
			socket.destroy();
			return;
		}
		const address = unmapAddress(remoteAddress);
		if (this.#deniedRanges?.contains(address)) {
			this.#refuse(socket, 'bad_proxy_header');
			return;
		}
		const policy = this.#allowedRanges?.contains(address) ? 'use' : this.#fallbackPolicy;
		if (policy === 'skip') onAccepted(undefined);
		else new HeaderWait(socket, policy, this.#timeoutMs, onAccepted, reason => this.#refuse(socket, reason));
	}

	#refuse(socket: Socket, reason: string): void {
		this.#onRefused(reason);
		socket.on('error', ignoreError);
		socket.destroy();
	}
}

/** A connection whose PROXY header has not arrived completely. */
class HeaderWait {
	readonly #socket: Socket;
	readonly #policy: ProxyPolicy;
	readonly #onAccepted: (peer: ConnectionPeer | undefined) => void;
	readonly #refuse: (reason: string) => void;
	readonly #timer: NodeJS.Timeout | undefined;
	readonly #onReadable = (): void => this.#readHeader();
	readonly #onEnd = (): void => this.#connectionEnded();
	#readBytes: Buffer | undefined;

	constructor(
		socket: Socket,
		policy: ProxyPolicy,
		timeoutMs: number,
		onAccepted: (peer: ConnectionPeer | undefined) => void,
		refuse: (reason: string) => void,
	) {
		this.#socket = socket;
		this.#policy = policy;
		this.#onAccepted = onAccepted;
		this.#refuse = refuse;
		this.#timer = timeoutMs > 0 ? setTimeout(() => this.#onTimeout(), timeoutMs).unref() : undefined;
		socket.on('readable', this.#onReadable);
		socket.on('error', ignoreError);
		socket.once('end', this.#onEnd);
		socket.once('close', this.#onEnd);
	}

	#readHeader(): void {
		const newBytes = this.#socket.read() as Buffer | null;
		if (newBytes === null) return;
		const bytes = this.#readBytes ? Buffer.concat([this.#readBytes, newBytes]) : newBytes;
		this.#readBytes = bytes;
		const header = parseProxyHeader(bytes);
		switch (header.kind) {
			case 'incomplete':
				return;
			case 'malformed':
				this.#stop();
				this.#refuse('bad_proxy_header');
				return;
			case 'none':
				this.#stop();
				if (this.#policy === 'require') this.#refuse('bad_proxy_header');
				else this.#accept(bytes, undefined);
				return;
			case 'header':
				this.#stop();
				if (this.#policy === 'reject') this.#refuse('bad_proxy_header');
				else this.#accept(bytes.subarray(header.length), this.#policy === 'ignore' ? undefined : header.peer);
		}
	}

	#accept(bytesAfterHeader: Buffer, peer: ConnectionPeer | undefined): void {
		this.#socket.off('error', ignoreError);
		if (bytesAfterHeader.length > 0) this.#socket.unshift(bytesAfterHeader);
		this.#onAccepted(peer);
	}

	/**
	 * Handles the timeout. A client that has sent nothing at all may simply not send PROXY headers. It is accepted, unless the
	 * policy requires a header.
	 */
	#onTimeout(): void {
		this.#stop();
		if (this.#readBytes === undefined && this.#policy !== 'require') this.#accept(Buffer.alloc(0), undefined);
		else this.#refuse('proxy_header_timeout');
	}

	#connectionEnded(): void {
		this.#stop();
		this.#socket.destroy();
	}

	#stop(): void {
		clearTimeout(this.#timer);
		this.#socket.off('readable', this.#onReadable);
		this.#socket.off('end', this.#onEnd);
		this.#socket.off('close', this.#onEnd);
	}
}

function ignoreError(): void {}
