/**
 * The Admin API: an HTTP endpoint on the main thread that reads and replaces the running configuration, reports liveness and
 * readiness, exports metrics and stops the process. It uses the same protocol engine and exchanges as the sites.
 *
 * | Request | See |
 * | --- | --- |
 * | `GET /live`, `GET /ready` | health.ts |
 * | `GET /metrics` | metrics.ts |
 * | `GET`, `POST`, `PUT`, `PATCH`, `DELETE` of `/config/[path]` and `/id/<id>[/path]` | config.ts |
 * | `POST /load`, `/load/confirm`, `/load/revert` | load.ts |
 * | `POST /adapt` | adapt.ts |
 * | `POST /stop` | stop.ts |
 * | `POST /upgrade` | upgrade.ts |
 * | `GET /reverse_proxy/upstreams` | upstreams.ts |
 * | `GET /cache`, `POST /cache/purge` | cache.ts |
 * | `GET /cluster` | cluster.ts |
 * | `GET /rollout` | rollout.ts |
 * | `GET /openapi.json` | openapi.ts |
 *
 * Access control is in access.ts, the form of errors in errors.ts. HEAD is GET without a body. Unknown paths are 404, other
 * methods 405 with `Allow`. Answers are never cached.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import { toReport } from '../compiler/diagnostics/diagnostic-report.ts';
import type { AdminSettings } from '../compiler/document/document.ts';
import { isStream } from '../compiler/exchange/body.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { PlaceMaker } from '../runtime/listeners/place-maker.ts';
import { CompilerFailure } from '../runtime/main/compiler-client.ts';
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import type { HandoverResult } from '../runtime/main/handover/successor-process.ts';
import { createHttp1Server } from '../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../runtime/protocols/http1/limits.ts';
import {
	type ProtocolHost,
	type ProtocolLimits,
	type ProtocolServer,
	UNIX_PEER,
} from '../runtime/protocols/protocol.ts';
import { descriptorOf } from '../runtime/sockets/duplicate-descriptor.ts';
import { AdminAccess } from './access.ts';
import { AdminBindError, bindAdmin, bindInheritedAdmin, type InheritedAdmin } from './bind.ts';
import {
	Confirmation,
	type ConfirmationTerms,
	type RevertibleLoad,
	type RollbackListener,
	type RollbackOutcome,
} from './confirmation.ts';
import type { AdminContext, AdminEndpoint, AdminOperation, HandoverRequest } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';
import { AdminError, refusalMessage } from './errors.ts';
import {
	type AdminAddress,
	type AdminEndpointAddress,
	DEFAULT_ADMIN_LISTEN,
	parseAdminAddress,
} from './listen-address.ts';
import { RefusalRate } from './refusal-rate.ts';

const KNOWN_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Response fields that are kept when an error replaces an answer that an endpoint had begun. */
const FIELDS_KEPT_ON_ERROR: ReadonlySet<string> = new Set([
	...['server', 'cache-control', 'x-content-type-options', 'vary'],
	...['access-control-allow-origin', 'access-control-expose-headers'],
]);

/** Limits of the Admin API's connections. Its few clients are trusted and may be slow, but must not use unlimited memory. */
const PROTOCOL_LIMITS: ProtocolLimits = {
	...DEFAULT_LIMITS,
	headTimeout: 10_000,
	idleTimeout: 120_000,
	bodyIdleTimeout: 30_000,
	writeIdleTimeout: 30_000,
	maxDrain: 65_536,
};
const MAX_CONNECTIONS = 256;

/** Returns what is logged about an Admin API without a token. */
function noTokenMessage({ kind }: AdminEndpointAddress): string {
	return kind === 'unix'
		? 'the admin API has no token: it admits every process that may open its socket'
		: 'the admin API has no token: it admits only clients with a loopback address';
}

/** Maximum milliseconds that the answer to a change waits for the configuration to be saved. */
const SAVE_TIMEOUT_MS = 10_000;

/** Maximum milliseconds that `close` waits for answers that are being written. */
const CLOSE_GRACE_MS = 1000;

/** Writes an entry to the process log. */
export type AdminLog = (
	level: 'info' | 'warn' | 'error',
	message: string,
	fields: { readonly [name: string]: unknown },
) => void;

/** What the Admin API needs from the process that starts it. */
export interface AdminOptions {
	/** The settings to use if the running document has none, as in a process started without a configuration. */
	readonly settings?: AdminSettings;
	/** Records writes and refusals, with the client and the result. */
	readonly log: AdminLog;
	/**
	 * Called with the JSON of a document, secrets included, that became the running one through the API. Resolves to a sentence
	 * that says why it could not be saved; undefined if it was saved or need not be.
	 */
	readonly onApplied?: (document: string) => Promise<string | undefined>;
	/** Called once, after the answer to `POST /stop` has been sent. */
	readonly onStop: () => void;
	/** Hands over to another process. Never rejects. */
	readonly handOver?: (request: HandoverRequest) => Promise<HandoverResult>;
	/** True if the configuration comes from the cluster, so that the API must not change it. */
	readonly isConfiguredByCluster?: boolean;
	/** The listening socket of the process that handed over to this one. It is used instead of binding the address. */
	readonly inheritedSocket?: InheritedAdmin | undefined;
}

export interface AdminServer {
	/**
	 * The address on which the API listens: `127.0.0.1:2019` with the real port, or `unix//run/svc.sock`; '' if it does not listen.
	 */
	readonly address: string;
	/** The listening socket, for another process to inherit, or undefined if no socket is open. */
	readonly socket: InheritedAdmin | undefined;
	/** The generation that awaits its confirmation, if any. */
	readonly unconfirmedGeneration: number | undefined;
	/**
	 * Waits for the confirmation of a configuration that is already being served. Returns the deadline, in milliseconds since 1970.
	 */
	awaitConfirmation(load: RevertibleLoad, terms: ConfirmationTerms): number;
	/** Rolls back the configuration that awaits its confirmation. Resolves to undefined if there is none. Never rejects. */
	rollBack(cause: string): Promise<RollbackOutcome | undefined>;
	/** Keeps `close` from deleting the file of a Unix socket, because another process uses it now. */
	keepSocketFile(): void;
	/** Stops listening, waits up to a second for answers being written, then closes every connection. Idempotent. */
	close(): Promise<void>;
}

/**
 * Starts the Admin API at the address in the running document, otherwise in `options.settings`. If there is neither, or the option
 * is `admin off`, nothing is bound. Token and origins are taken from the running document for each request, so a load that changes
 * them takes effect at once; the address stays. Throws AdminBindError.
 */
export async function startAdmin(runtime: RuntimeControl, options: AdminOptions): Promise<AdminServer> {
	const settings = runtime.admin ?? options.settings;
	if (settings === undefined || settings.off === true) return NO_ADMIN;
	const server = createServer();
	server.maxConnections = MAX_CONNECTIONS;
	const { inheritedSocket } = options;
	const address = inheritedSocket
		? await bindInheritedAdmin(server, inheritedSocket)
		: await bindAdmin(server, parseConfiguredAddress(settings));
	const host = new AdminHost(runtime, options, address);
	const protocol = createHttp1Server(host);
	// The listener below misses no connection, because connections are accepted in a later turn of the event loop.
	const peer = address.kind === 'unix' ? UNIX_PEER : undefined;
	const placeMaker = new PlaceMaker(
		() => [protocol],
		() => {},
	);
	server.on('connection', socket => {
		// Keeps the last slot free by closing the connection that has been idle longest.
		if (protocol.connections >= MAX_CONNECTIONS - 1) placeMaker.makeRoom();
		else placeMaker.resetFreedSlots();
		protocol.accept(socket, 'http', peer);
	});
	server.on('error', error =>
		options.log('error', 'the admin API failed to accept a connection', { error: error.message }),
	);
	if (settings.token === undefined) options.log('warn', noTokenMessage(address), { address: address.text });
	options.log('info', 'the admin API listens', { address: address.text });
	return new ListeningAdmin(address, server, protocol, host);
}

const NO_ADMIN: AdminServer = {
	address: '',
	socket: undefined,
	unconfirmedGeneration: undefined,
	awaitConfirmation: () => {
		throw new Error('Without the Admin API, nothing can be confirmed.');
	},
	rollBack: async () => undefined,
	keepSocketFile: () => {},
	close: async () => {},
};

/** Returns the address as it is written in the settings; undefined if the Admin API is off. */
export function configuredAddress(settings: AdminSettings | undefined): string | undefined {
	return settings === undefined || settings.off === true ? undefined : (settings.listen ?? DEFAULT_ADMIN_LISTEN);
}

function parseConfiguredAddress(settings: AdminSettings): AdminAddress {
	const addressText = settings.listen ?? DEFAULT_ADMIN_LISTEN;
	const address = parseAdminAddress(addressText);
	if (address) return address;
	throw new AdminBindError(addressText, Object.assign(new Error('not an address'), { code: 'EINVAL' }));
}

class ListeningAdmin implements AdminServer {
	readonly address: string;
	/** The path of a Unix socket's file, which is removed when the API closes. */
	#socketFile: { readonly path: string; readonly inode: bigint } | undefined;
	readonly #boundAddress: AdminEndpointAddress;
	readonly #server: Server;
	readonly #protocol: ProtocolServer;
	readonly #adminHost: AdminHost;
	#closePromise: Promise<void> | undefined = undefined;

	constructor(address: AdminEndpointAddress, server: Server, protocol: ProtocolServer, host: AdminHost) {
		this.address = address.text;
		this.#boundAddress = address;
		this.#socketFile = address.kind === 'unix' && address.path !== '' ? identifySocketFile(address.path) : undefined;
		this.#server = server;
		this.#protocol = protocol;
		this.#adminHost = host;
	}

	get socket(): InheritedAdmin | undefined {
		try {
			return { descriptor: descriptorOf(this.#server), bound: this.#boundAddress };
		} catch {
			return undefined;
		}
	}

	keepSocketFile(): void {
		this.#socketFile = undefined;
	}

	get unconfirmedGeneration(): number | undefined {
		return this.#adminHost.confirmation.pending?.generation;
	}

	awaitConfirmation(load: RevertibleLoad, terms: ConfirmationTerms): number {
		return this.#adminHost.confirmation.awaitConfirmation(load, terms);
	}

	rollBack(cause: string): Promise<RollbackOutcome | undefined> {
		return this.#adminHost.confirmation.revert(cause);
	}

	close(): Promise<void> {
		this.#closePromise ??= this.#close();
		return this.#closePromise;
	}

	async #close(): Promise<void> {
		this.#adminHost.draining = true;
		const file = this.#socketFile;
		// Another server may have replaced the socket file, so it is removed only if it is still ours.
		if (file && identifySocketFile(file.path)?.inode === file.inode) unlinkSync(file.path);
		const serverClosed = new Promise<void>(resolve => this.#server.close(() => resolve()));
		this.#protocol.drain();
		const deadlineMs = performance.now() + CLOSE_GRACE_MS;
		while (this.#protocol.connections > 0 && performance.now() < deadlineMs) {
			await new Promise(resolve => setTimeout(resolve, 10));
		}
		this.#protocol.close();
		this.#adminHost.confirmation.close();
		await serverClosed;
	}
}

function identifySocketFile(path: string): { readonly path: string; readonly inode: bigint } | undefined {
	const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
	return stats && { path, inode: stats.ino };
}

/** Routes requests to endpoints, and counts and logs the requests. */
class AdminHost implements ProtocolHost, AdminContext {
	readonly runtime: RuntimeControl;
	readonly limits = PROTOCOL_LIMITS;
	readonly confirmation: Confirmation;
	draining = false;
	readonly #options: AdminOptions;
	readonly #address: AdminEndpointAddress;
	#access: AdminAccess;
	/** The settings from which `#access` was created. */
	#accessSettings: AdminSettings;
	readonly #refusals = new RefusalRate();
	/** Refused requests that are kept out of the log, because it already has enough refusals of the same client. */
	readonly #unloggedRequests = new WeakSet<Exchange>();
	#finalExchange: Exchange | undefined = undefined;
	#isStopRequested = false;
	/** For requests that changed the configuration, until they are logged: the result, and the generations before and after. */
	readonly #changesByExchange = new WeakMap<
		Exchange,
		{ readonly result: string; readonly from: number; readonly to: number }
	>();
	/** True if the configuration of the last change is served but could not be saved. */
	#isUnsaved = false;

	constructor(runtime: RuntimeControl, options: AdminOptions, address: AdminEndpointAddress) {
		this.runtime = runtime;
		this.#options = options;
		this.#address = address;
		this.#accessSettings = runtime.admin ?? options.settings ?? {};
		this.#access = new AdminAccess(this.#accessSettings, address);
		const onRollback: RollbackListener = (generation, cause, outcome) => {
			if (outcome.result === 'applied' || outcome.result === 'handed_over') {
				options.log('warn', 'configuration rolled back', { generation, cause });
				// A rollback by handover needs no saving: the unconfirmed configuration was never saved, so the previous one still is.
				if (outcome.result === 'applied') void this.saveConfirmed();
				return;
			}
			const message = 'the configuration could not be rolled back: the unconfirmed configuration is still being served';
			options.log('error', message, { generation, cause, ...rollbackFailureFields(outcome) });
		};
		this.confirmation = new Confirmation(runtime, onRollback, options.isConfiguredByCluster);
	}

	refuseWhilePending(): void {
		const { pending, revertingGeneration } = this.confirmation;
		if (revertingGeneration !== undefined) {
			throw new AdminError(409, 'confirmation_pending', `Generation ${revertingGeneration} is being rolled back.`);
		}
		if (!pending) return;
		const message = `Generation ${pending.generation} awaits its confirmation: confirm it or roll it back first.`;
		throw new AdminError(409, 'confirmation_pending', message);
	}

	refuseIfConfiguredByCluster(): void {
		if (this.#options.isConfiguredByCluster !== true) return;
		const message =
			'This machine takes its configuration from its cluster. Change it with `svc publish`. If the local file of the machine has changed, stop and start the server.';
		throw new AdminError(409, 'configured_by_cluster', message);
	}

	async recordChange(x: Exchange, outcome: LoadOutcome, tentative = false): Promise<LoadOutcome> {
		const { result } = outcome;
		const generation = result === 'applied' ? outcome.generation : this.runtime.generation;
		this.#changesByExchange.set(x, {
			result,
			from: result === 'applied' && !outcome.unchanged ? generation - 1 : generation,
			to: generation,
		});
		if (outcome.result !== 'applied' || tentative) return outcome;
		// Saving is retried, because an operator can free space on the disk and then load the same configuration again.
		if (outcome.unchanged && !this.#isUnsaved) return outcome;
		return { ...outcome, diagnostics: [...outcome.diagnostics, ...(await this.saveConfirmed())] };
	}

	async saveConfirmed(): Promise<DiagnosticReport[]> {
		const pendingSave = this.#options.onApplied?.(this.runtime.document) ?? Promise.resolve(undefined);
		let saveTimer: NodeJS.Timeout | undefined;
		const timeoutReason = new Promise<string>(resolve => {
			saveTimer = setTimeout(resolve, SAVE_TIMEOUT_MS, 'The disk does not respond.');
		});
		const reason = await Promise.race([pendingSave, timeoutReason]);
		clearTimeout(saveTimer);
		this.#isUnsaved = reason !== undefined;
		return reason === undefined ? [] : [notSavedWarning(reason)];
	}

	handle(x: Exchange): void | Promise<void> {
		const endpoint = endpointOf(x.request.path);
		try {
			const answerPromise = this.#answer(x, endpoint);
			if (answerPromise !== undefined) {
				return answerPromise.catch(error => this.#answerError(x, error)).then(() => this.#countAndLog(x, endpoint));
			}
		} catch (error) {
			this.#answerError(x, error);
		}
		this.#countAndLog(x, endpoint);
	}

	onExchangeFinished(x: Exchange): void {
		for (const finish of x.finishListeners ?? []) finish(x);
		if (x !== this.#finalExchange || this.#isStopRequested) return;
		this.#isStopRequested = true;
		this.#options.onStop();
	}

	async handOver(request: HandoverRequest): Promise<Extract<HandoverResult, { result: 'done' }>> {
		const result = await this.#options.handOver?.(request);
		if (result?.result === 'done') return result;
		const { message, diagnostics, output } = result ?? { message: 'This server cannot hand over to another process.' };
		if (diagnostics) throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
		throw new AdminError(503, 'handover_failed', `The server goes on as before. ${message}`, { output });
	}

	stopAfter(x: Exchange): void {
		this.#finalExchange ??= x;
	}

	countRefusal(reason: string): void {
		this.#options.log('warn', 'a malformed admin API request was refused', { reason });
	}

	onConnectionOpened(): void {}

	onConnectionClosed(): void {}

	#currentAccess(): AdminAccess {
		const settings = this.runtime.admin ?? this.#options.settings ?? this.#accessSettings;
		if (settings !== this.#accessSettings) {
			// Even if the file has not changed, the token disappears when its environment variable is not set at a reload.
			if (settings.token === undefined && this.#accessSettings.token !== undefined)
				this.#options.log('warn', noTokenMessage(this.#address), {});
			this.#accessSettings = settings;
			this.#access = new AdminAccess(settings, this.#address);
		}
		return this.#access;
	}

	/** Calls `AdminAccess.check`. If a client is refused repeatedly, keeps most of its refusals out of the log. */
	#admit(x: Exchange): boolean {
		try {
			return this.#currentAccess().check(x);
		} catch (error) {
			if (this.#refusals.countRefusal(x.connection.remoteAddress, performance.now())) this.#unloggedRequests.add(x);
			throw error;
		}
	}

	#answer(x: Exchange, endpoint: AdminEndpoint | undefined): void | Promise<void> {
		const headers = x.response.headers;
		headers.set('Cache-Control', 'no-store');
		headers.set('X-Content-Type-Options', 'nosniff');
		const isPreflight = this.#admit(x);
		if (endpoint === undefined) throw new AdminError(404, 'not_found', 'No such endpoint.');
		const methods = Object.keys(endpoint.operationsByMethod);
		const allowField = (methods.includes('GET') ? [...methods, 'HEAD'] : methods).join(', ');
		if (isPreflight) {
			x.response.status = 204;
			headers.set('Access-Control-Allow-Methods', allowField);
			headers.set('Access-Control-Allow-Headers', 'Authorization, Content-Type, If-Match, If-None-Match');
			return;
		}
		const operation = operationOf(endpoint, x.request.method);
		if (operation === undefined) {
			throw new AdminError(405, 'method_not_allowed', `${endpoint.path} supports ${allowField}.`, {
				headers: [['Allow', allowField]],
			});
		}
		return operation.run(x, this);
	}

	/** Answers with an error, replacing whatever an endpoint had begun to answer. */
	#answerError(x: Exchange, thrown: unknown): void {
		const response = x.response;
		if (isStream(response.body)) response.body.cancel();
		let error: AdminError;
		if (thrown instanceof AdminError) error = thrown;
		else if (thrown instanceof CompilerFailure && thrown.stackTrace === undefined) {
			error = new AdminError(503, 'load_failed', thrown.message);
		} else {
			error = new AdminError(500, 'internal', "Internal error; see the server's log.");
			this.#options.log('error', 'an admin API request failed', {
				path: x.request.path,
				error: detailOf(thrown),
			});
		}
		response.headers.filter(name => FIELDS_KEPT_ON_ERROR.has(name.toLowerCase()));
		response.headers.set('Content-Type', 'application/json');
		for (const [name, value] of error.headers) response.headers.set(name, value);
		response.status = error.status;
		response.body = `${JSON.stringify(error)}\n`;
	}

	/** Counts a request, and logs it if it is a write or was refused. */
	#countAndLog(x: Exchange, endpoint: AdminEndpoint | undefined): void {
		const { method } = x.request;
		const status = x.response.status;
		// Clients must not be able to choose the values of metric labels.
		this.runtime.countAdminRequest(endpoint?.path ?? 'other', KNOWN_METHODS.has(method) ? method : 'OTHER', status);
		if (this.#unloggedRequests.has(x)) return;
		const isRefused = status === 401 || status === 403;
		if (!isRefused && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')) return;
		this.#options.log(isRefused || status >= 500 ? 'warn' : 'info', 'admin API request', {
			method,
			path: x.request.path,
			status,
			remote: x.connection.remoteAddress || 'unix socket',
			authenticated: this.#access.hasToken && !isRefused,
			...this.#changesByExchange.get(x),
			duration: (performance.now() - x.startedAt) / 1000,
		});
	}
}

/** Describes an unexpected error for the log. */
function detailOf(thrown: unknown): string {
	if (thrown instanceof CompilerFailure) return thrown.stackTrace ?? thrown.message;
	return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

/** Returns why a rollback failed, for the log. */
function rollbackFailureFields(outcome: Exclude<RollbackOutcome, { result: 'applied' | 'handed_over' }>): {
	readonly [name: string]: unknown;
} {
	const { result } = outcome;
	if (result === 'failed') return { result, problems: [outcome.message] };
	if (result === 'restart_required') return { result, problems: outcome.reasons.map(({ message }) => message) };
	const errors = outcome.diagnostics.filter(({ severity }) => severity === 'error');
	return { result, problems: errors.map(({ message }) => message) };
}

/** Returns the warning that a configuration could not be saved; `reason` is a sentence. */
export function notSavedWarning(reason: string): DiagnosticReport {
	return toReport({
		code: 'admin/not-saved',
		severity: 'warning',
		message: `The configuration was applied, but could not be saved: ${reason}`,
		hint: '`svc run --resume` would start with the last saved one. Fix the cause and load it again.',
	});
}

function endpointOf(path: string): AdminEndpoint | undefined {
	for (const endpoint of ENDPOINTS) {
		if (path === endpoint.path) return endpoint;
		if (endpoint.includesSubpaths === true && (path.startsWith(endpoint.path) || path === endpoint.path.slice(0, -1)))
			return endpoint;
	}
	return undefined;
}

function operationOf(endpoint: AdminEndpoint, method: string): AdminOperation | undefined {
	const name = method === 'HEAD' && !Object.hasOwn(endpoint.operationsByMethod, 'HEAD') ? 'GET' : method;
	return Object.hasOwn(endpoint.operationsByMethod, name) ? endpoint.operationsByMethod[name] : undefined;
}
