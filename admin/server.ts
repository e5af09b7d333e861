/**
 * The Admin API: an HTTP endpoint of the main thread that reads and replaces the running configuration, tells liveness and
 * readiness, gives metrics and stops the process. It runs over the same engine and exchanges as the sites.
 *
 * | Request | See |
 * | --- | --- |
 * | `GET /live`, `GET /ready` | health.ts |
 * | `GET /metrics` | metrics.ts |
 * | `GET`, `POST`, `PUT`, `PATCH`, `DELETE` of `/config/[path]` and `/id/<id>[/path]` | config.ts |
 * | `POST /load`, `/load/confirm`, `/load/revert` | load.ts |
 * | `POST /adapt` | adapt.ts |
 * | `POST /stop` | stop.ts |
 * | `GET /reverse_proxy/upstreams` | upstreams.ts |
 *
 * Who may call is in access.ts, the shape of errors in errors.ts. HEAD is GET without a body. Another path is 404, another
 * method 405 with `Allow`. Answers are never cached.
 */
import { createServer, type Server } from 'node:net';
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import { toReport } from '../compiler/diagnostics/diagnostic-report.ts';
import type { AdminSettings } from '../compiler/document/document.ts';
import { isStream } from '../compiler/exchange/body.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { PlaceMaker } from '../runtime/listeners/place-maker.ts';
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import { createHttp1Server } from '../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../runtime/protocols/http1/limits.ts';
import {
	type ProtocolHost,
	type ProtocolLimits,
	type ProtocolServer,
	UNIX_PEER,
} from '../runtime/protocols/protocol.ts';
import { AdminAccess } from './access.ts';
import { AdminBindError, bind } from './bind.ts';
import { Confirmation } from './confirmation.ts';
import type { AdminContext, AdminEndpoint, AdminOperation } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';
import { AdminError } from './errors.ts';
import {
	type AdminAddress,
	type AdminEndpointAddress,
	DEFAULT_ADMIN_LISTEN,
	parseAdminAddress,
} from './listen-address.ts';
import { RefusalRate } from './refusal-rate.ts';

const KNOWN_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Fields that say nothing of what an endpoint had begun to answer. */
const KEPT_ON_ERROR: ReadonlySet<string> = new Set([
	...['server', 'cache-control', 'x-content-type-options', 'vary'],
	...['access-control-allow-origin', 'access-control-expose-headers'],
]);

/** Bounds: few, patient and trusted clients, but nothing without an end. */
const LIMITS: ProtocolLimits = {
	...DEFAULT_LIMITS,
	headTimeout: 10_000,
	idleTimeout: 120_000,
	bodyIdleTimeout: 30_000,
	writeIdleTimeout: 30_000,
	maxDrain: 65_536,
};
const MAX_CONNECTIONS = 256;

const NO_TOKEN = 'the admin API has no token: it admits clients on this machine only';

/** Milliseconds that the answer to a change waits for it to be saved. */
const SAVE_LIMIT = 10_000;

/** Milliseconds that `close` waits for answers that are being written. */
const CLOSE_GRACE = 1000;

/** Takes entries of the process log. */
export type AdminLog = (
	level: 'info' | 'warn' | 'error',
	message: string,
	fields: { readonly [name: string]: unknown },
) => void;

/** What the command line adds to the runtime. */
export interface AdminOptions {
	/** Settings while the running document has none: a process that was started without a configuration. */
	readonly settings?: AdminSettings;
	/** Writes and refusals are recorded here, with who asked and what came of it. */
	readonly log: AdminLog;
	/**
	 * Called with the JSON of a document, secrets included, that a change through the API has made the running one. Resolves to
	 * why it could not be saved, as a sentence; undefined when it was saved, or need not be.
	 */
	readonly onApplied?: (document: string) => Promise<string | undefined>;
	/** Called once, after the answer to `POST /stop` has been written. */
	readonly onStop: () => void;
}

/** The Admin API, listening. */
export interface AdminServer {
	/** Where it listens: `127.0.0.1:2019` with the real port, `unix//run/svc.sock`; '' when it is off. */
	readonly address: string;
	/** Stops listening, lets answers be written for a second, then ends every connection. Safe to call twice. */
	close(): Promise<void>;
}

/**
 * Starts the Admin API where the running document (else `options.settings`) says. Nothing is bound without either, and
 * with `admin off`. Token and origins are read anew for each request, so a load that changes them counts at once; the address
 * stays. Throws AdminBindError.
 */
export async function startAdmin(runtime: RuntimeControl, options: AdminOptions): Promise<AdminServer> {
	const settings = runtime.admin ?? options.settings;
	if (settings === undefined || settings.off === true) return { address: '', close: async () => {} };
	const server = createServer();
	server.maxConnections = MAX_CONNECTIONS;
	const address = await bind(server, addressOf(settings));
	const host = new AdminHost(runtime, options, address);
	const protocol = createHttp1Server(host);
	// No connection has been accepted yet: that is for the next turn of the event loop.
	const peer = address.kind === 'unix' ? UNIX_PEER : undefined;
	const places = new PlaceMaker(
		() => [protocol],
		() => {},
	);
	server.on('connection', socket => {
		// The last place is kept free by closing whoever has been idle for the longest.
		if (protocol.connections >= MAX_CONNECTIONS - 1) places.make();
		else places.reset();
		protocol.accept(socket, 'http', peer);
	});
	server.on('error', error =>
		options.log('error', 'the admin API failed to accept a connection', { error: error.message }),
	);
	if (settings.token === undefined) options.log('warn', NO_TOKEN, { address: address.text });
	options.log('info', 'the admin API listens', { address: address.text });
	return new ListeningAdmin(address.text, server, protocol, host);
}

function addressOf(settings: AdminSettings): AdminAddress {
	const text = settings.listen ?? DEFAULT_ADMIN_LISTEN;
	const address = parseAdminAddress(text);
	if (address) return address;
	throw new AdminBindError(text, Object.assign(new Error('not an address'), { code: 'EINVAL' }));
}

class ListeningAdmin implements AdminServer {
	readonly address: string;
	readonly #server: Server;
	readonly #protocol: ProtocolServer;
	readonly #host: AdminHost;
	#closing: Promise<void> | undefined = undefined;

	constructor(address: string, server: Server, protocol: ProtocolServer, host: AdminHost) {
		this.address = address;
		this.#server = server;
		this.#protocol = protocol;
		this.#host = host;
	}

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		this.#host.draining = true;
		const closed = new Promise<void>(resolve => this.#server.close(() => resolve()));
		this.#protocol.drain();
		const end = performance.now() + CLOSE_GRACE;
		while (this.#protocol.connections > 0 && performance.now() < end) {
			await new Promise(resolve => setTimeout(resolve, 10));
		}
		this.#protocol.close();
		this.#host.confirmation.close();
		await closed;
	}
}

/** Routes requests to endpoints, and accounts for them. */
class AdminHost implements ProtocolHost, AdminContext {
	readonly runtime: RuntimeControl;
	readonly limits = LIMITS;
	readonly confirmation: Confirmation;
	draining = false;
	readonly #options: AdminOptions;
	readonly #address: AdminEndpointAddress;
	#access: AdminAccess;
	/** The settings that `#access` was made of. */
	#accessOf: AdminSettings;
	readonly #refusals = new RefusalRate();
	/** Requests that were refused, of clients of whom the log has enough. */
	readonly #unlogged = new WeakSet<Exchange>();
	#stopsAfter: Exchange | undefined = undefined;
	#stopAsked = false;
	/** Generations before and after the changes whose answers are being written. */
	readonly #changes = new WeakMap<Exchange, { readonly result: string; readonly from: number; readonly to: number }>();
	/** The last change is served and could not be saved. */
	#isUnsaved = false;

	constructor(runtime: RuntimeControl, options: AdminOptions, address: AdminEndpointAddress) {
		this.runtime = runtime;
		this.#options = options;
		this.#address = address;
		this.#accessOf = runtime.admin ?? options.settings ?? {};
		this.#access = new AdminAccess(this.#accessOf, address);
		this.confirmation = new Confirmation(runtime, (generation, cause, outcome) => {
			if (outcome.result === 'applied') {
				options.log('warn', 'configuration rolled back', { generation, cause });
				void this.confirmed();
				return;
			}
			const message = 'the configuration could not be rolled back: what nobody confirmed is still served';
			options.log('error', message, { generation, cause, ...rollbackFailure(outcome) });
		});
	}

	changeable(): void {
		const { pending } = this.confirmation;
		if (!pending) return;
		const message = `Generation ${pending.generation} waits for its confirmation: confirm it or take it back first.`;
		throw new AdminError(409, 'confirmation_pending', message);
	}

	async changed(x: Exchange, outcome: LoadOutcome, tentative = false): Promise<LoadOutcome> {
		const { result } = outcome;
		const to = result === 'applied' ? outcome.generation : this.runtime.generation;
		this.#changes.set(x, { result, from: result === 'applied' && !outcome.unchanged ? to - 1 : to, to });
		if (outcome.result !== 'applied' || tentative) return outcome;
		// What could not be saved is tried again: whoever has made room on the disk loads the same once more.
		if (outcome.unchanged && !this.#isUnsaved) return outcome;
		return { ...outcome, diagnostics: [...outcome.diagnostics, ...(await this.confirmed())] };
	}

	async confirmed(): Promise<DiagnosticReport[]> {
		const saved = this.#options.onApplied?.(this.runtime.document) ?? Promise.resolve(undefined);
		let timer: NodeJS.Timeout | undefined;
		const late = new Promise<string>(resolve => {
			timer = setTimeout(resolve, SAVE_LIMIT, 'The disk does not answer.');
		});
		const reason = await Promise.race([saved, late]);
		clearTimeout(timer);
		this.#isUnsaved = reason !== undefined;
		return reason === undefined ? [] : [notSaved(reason)];
	}

	handle(x: Exchange): void | Promise<void> {
		const endpoint = endpointOf(x.request.path);
		try {
			const pending = this.#answer(x, endpoint);
			if (pending !== undefined) {
				return pending.catch(error => this.#fail(x, error)).then(() => this.#account(x, endpoint));
			}
		} catch (error) {
			this.#fail(x, error);
		}
		this.#account(x, endpoint);
	}

	finished(x: Exchange): void {
		for (const finish of x.whenFinished ?? []) finish(x);
		if (x !== this.#stopsAfter || this.#stopAsked) return;
		this.#stopAsked = true;
		this.#options.onStop();
	}

	stopAfter(x: Exchange): void {
		this.#stopsAfter ??= x;
	}

	refused(reason: string): void {
		this.#options.log('warn', 'a malformed admin API request was refused', { reason });
	}

	opened(): void {}

	closed(): void {}

	#currentAccess(): AdminAccess {
		const settings = this.runtime.admin ?? this.#options.settings ?? this.#accessOf;
		if (settings !== this.#accessOf) {
			// A reload where the variable that holds it is not set takes it away without a word in the file.
			if (settings.token === undefined && this.#accessOf.token !== undefined) this.#options.log('warn', NO_TOKEN, {});
			this.#accessOf = settings;
			this.#access = new AdminAccess(settings, this.#address);
		}
		return this.#access;
	}

	/** As `AdminAccess.check`; a client that is refused again and again is not logged each time. */
	#admit(x: Exchange): boolean {
		try {
			return this.#currentAccess().check(x);
		} catch (error) {
			if (this.#refusals.refused(x.connection.remoteAddress, performance.now())) this.#unlogged.add(x);
			throw error;
		}
	}

	#answer(x: Exchange, endpoint: AdminEndpoint | undefined): void | Promise<void> {
		const headers = x.response.headers;
		headers.set('Cache-Control', 'no-store');
		headers.set('X-Content-Type-Options', 'nosniff');
		const isPreflight = this.#admit(x);
		if (endpoint === undefined) throw new AdminError(404, 'not_found', 'There is no such endpoint.');
		const methods = Object.keys(endpoint.methods);
		const allow = (methods.includes('GET') ? [...methods, 'HEAD'] : methods).join(', ');
		if (isPreflight) {
			x.response.status = 204;
			headers.set('Access-Control-Allow-Methods', allow);
			headers.set('Access-Control-Allow-Headers', 'Authorization, Content-Type, If-Match, If-None-Match');
			return;
		}
		const operation = methodOf(endpoint, x.request.method);
		if (operation === undefined) {
			throw new AdminError(405, 'method_not_allowed', `${endpoint.path} takes ${allow}.`, {
				headers: [['Allow', allow]],
			});
		}
		return operation.run(x, this);
	}

	/** Answers with an error; what an endpoint had begun to answer is dropped. */
	#fail(x: Exchange, thrown: unknown): void {
		const response = x.response;
		if (isStream(response.body)) response.body.cancel();
		let error: AdminError;
		if (thrown instanceof AdminError) error = thrown;
		else {
			error = new AdminError(500, 'internal', 'The server failed to answer; its log says more.');
			this.#options.log('error', 'an admin API request failed', {
				path: x.request.path,
				error: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
			});
		}
		response.headers.filter(name => KEPT_ON_ERROR.has(name.toLowerCase()));
		response.headers.set('Content-Type', 'application/json');
		for (const [name, value] of error.headers) response.headers.set(name, value);
		response.status = error.status;
		response.body = `${JSON.stringify(error)}\n`;
	}

	/** Counts every request; records those that write or were refused. */
	#account(x: Exchange, endpoint: AdminEndpoint | undefined): void {
		const { method } = x.request;
		const status = x.response.status;
		// Labels must not be the client's to choose.
		this.runtime.countAdminRequest(endpoint?.path ?? 'other', KNOWN_METHODS.has(method) ? method : 'OTHER', status);
		if (this.#unlogged.has(x)) return;
		const isRefused = status === 401 || status === 403;
		if (!isRefused && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')) return;
		this.#options.log(isRefused || status >= 500 ? 'warn' : 'info', 'admin API request', {
			method,
			path: x.request.path,
			status,
			remote: x.connection.remoteAddress || 'unix socket',
			authenticated: this.#access.hasToken && !isRefused,
			...this.#changes.get(x),
			duration: (performance.now() - x.startedAt) / 1000,
		});
	}
}

/** Why a rollback failed, for the log. */
function rollbackFailure(outcome: Exclude<LoadOutcome, { result: 'applied' }>): { readonly [name: string]: unknown } {
	const { result } = outcome;
	if (result === 'failed') return { result, problems: [outcome.message] };
	if (result === 'restart_required') return { result, problems: outcome.reasons.map(({ message }) => message) };
	const errors = outcome.diagnostics.filter(({ severity }) => severity === 'error');
	return { result, problems: errors.map(({ message }) => message) };
}

function notSaved(reason: string): DiagnosticReport {
	return toReport({
		code: 'admin/not-saved',
		severity: 'warning',
		message: `The configuration is served, but it could not be saved: ${reason}`,
		hint: '`svc run --resume` would start with the one that was saved last. Remove the cause, and load it again.',
	});
}

function endpointOf(path: string): AdminEndpoint | undefined {
	for (const endpoint of ENDPOINTS) {
		if (path === endpoint.path) return endpoint;
		if (endpoint.below === true && (path.startsWith(endpoint.path) || path === endpoint.path.slice(0, -1)))
			return endpoint;
	}
	return undefined;
}

function methodOf(endpoint: AdminEndpoint, method: string): AdminOperation | undefined {
	const name = method === 'HEAD' && !Object.hasOwn(endpoint.methods, 'HEAD') ? 'GET' : method;
	return Object.hasOwn(endpoint.methods, name) ? endpoint.methods[name] : undefined;
}
