/**
 * Connects to an IP address without `net.Socket`, whose work for a refused connection costs several times as much as the system
 * call. It uses Node's internal handles. If they are not as expected, `dialDirectly` returns undefined, and the caller uses
 * `net`.
 */
import { isIP } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { UpstreamError } from '../../compiler/exchange/leases.ts';
import type { ClientTarget, DialAttempt, DialOptions, DialOwner } from './dialer.ts';
import { DirectSocket } from './direct-socket.ts';
import { isDirectHandle } from './stream-handle.ts';
import { MAX_TIMER_MS, UpstreamSocket, type UpstreamSocketOwner } from './upstream-socket.ts';

interface ConnectRequest {
	oncomplete: (status: number) => void;
}

interface TcpHandle {
	connect(request: ConnectRequest, address: string, port: number): number;
	connect6(request: ConnectRequest, address: string, port: number): number;
	setNoDelay(on: boolean): number;
	setKeepAlive(on: boolean, idle: number, interval: undefined, count: undefined): number;
	close(): void;
}

/** Node's internal TCP binding. */
interface TcpBinding {
	readonly TCP: new (kind: number) => TcpHandle;
	readonly TCPConnectWrap: new () => ConnectRequest;
	readonly constants: { readonly SOCKET: number };
}

const TCP_BINDING: TcpBinding | undefined = findTcpBinding();

/** Starts a connection attempt. Returns undefined if `net` must be used instead. */
export function dialDirectly(
	target: ClientTarget,
	options: DialOptions,
	proxyHeader: Uint8Array | undefined,
	owner: DialOwner,
): DialAttempt | undefined {
	if (TCP_BINDING === undefined || !('port' in target) || options.localAddress !== undefined) return undefined;
	const family = isIP(target.host);
	if (family === 0) return undefined;
	const handle = new TCP_BINDING.TCP(TCP_BINDING.constants.SOCKET);
	if (isDirectHandle(handle)) return new DirectDialing(handle, target, family, options, proxyHeader, owner);
	handle.close();
	return undefined;
}

class DirectDialing implements DialAttempt, UpstreamSocketOwner {
	readonly #handle: TcpHandle;
	readonly #target: { readonly host: string; readonly port: number };
	readonly #options: DialOptions;
	readonly #proxyHeader: Uint8Array | undefined;
	readonly #owner: DialOwner;
	#timer: NodeJS.Timeout | undefined = undefined;
	#isFinished = false;

	constructor(
		handle: TcpHandle,
		target: { readonly host: string; readonly port: number },
		family: number,
		options: DialOptions,
		proxyHeader: Uint8Array | undefined,
		owner: DialOwner,
	) {
		this.#handle = handle;
		this.#target = target;
		this.#options = options;
		this.#proxyHeader = proxyHeader;
		this.#owner = owner;
		const request = new TCP_BINDING!.TCPConnectWrap();
		request.oncomplete = status => this.#onConnectCompleted(status);
		handle.setNoDelay(true);
		const { host, port } = target;
		const connectStatus = family === 6 ? handle.connect6(request, host, port) : handle.connect(request, host, port);
		if (connectStatus !== 0) {
			queueMicrotask(() => this.#onConnectCompleted(connectStatus));
			return;
		}
		const { connectTimeout } = options;
		if (connectTimeout > 0) {
			this.#timer = setTimeout(
				() => this.#fail('timeout', 'connecting timed out'),
				Math.min(connectTimeout, MAX_TIMER_MS),
			);
		}
	}

	abandon(): void {
		if (this.#finish()) this.#handle.close();
	}

	/** Returns false to stop reading, because an upstream must not send anything before the first request. */
	onReceived(): boolean {
		return false;
	}

	onPeerEnded(): void {}

	onClosed(): void {}

	#onConnectCompleted(status: number): void {
		if (this.#isFinished) return;
		if (status !== 0) {
			const { host, port } = this.#target;
			this.#fail('connect', `connect ${getSystemErrorName(status)} ${host}:${port}`);
			return;
		}
		this.#finish();
		const handle = this.#handle;
		const { probeInterval, readBuffer } = this.#options;
		if (probeInterval > 0) handle.setKeepAlive(true, Math.floor(probeInterval / 1000), undefined, undefined);
		const socket = new DirectSocket(handle as never);
		const upstreamSocket = new UpstreamSocket(this);
		upstreamSocket.attachDirect(socket, readBuffer());
		if (this.#proxyHeader) socket.write(this.#proxyHeader);
		this.#owner.onDialed(upstreamSocket);
	}

	#fail(phase: 'connect' | 'timeout', message: string): void {
		if (!this.#finish()) return;
		this.#handle.close();
		// The error needs no stack trace, which would cost more than the rest of the error.
		const { stackTraceLimit } = Error;
		Error.stackTraceLimit = 0;
		const error = new UpstreamError(phase, message, undefined, true);
		Error.stackTraceLimit = stackTraceLimit;
		this.#owner.onDialFailed(error);
	}

	/** Marks the attempt as finished. Returns true only on the first call. */
	#finish(): boolean {
		if (this.#isFinished) return false;
		this.#isFinished = true;
		if (this.#timer !== undefined) clearTimeout(this.#timer);
		return true;
	}
}

/** Returns Node's binding through a public but deprecated function, or undefined if it is missing or has changed. */
function findTcpBinding(): TcpBinding | undefined {
	try {
		const { binding } = process as unknown as { binding(name: string): Partial<TcpBinding> };
		const { TCP, TCPConnectWrap, constants } = binding.call(process, 'tcp_wrap');
		if (typeof TCP !== 'function' || typeof TCPConnectWrap !== 'function') return undefined;
		return typeof constants?.SOCKET === 'number' ? { TCP, TCPConnectWrap, constants } : undefined;
	} catch {
		return undefined;
	}
}
