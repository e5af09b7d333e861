/** The issuer `acme`: orders certificates from an ACME server within its rate limits. After failures, it first tries a test server. */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import type { IssuerSettings } from '../../../compiler/document/tls-settings.ts';
import { DEFAULT_ACME_DIRECTORY } from '../../../compiler/modules/providers/issuers/acme.ts';
import type { PreferredChains } from '../../../compiler/modules/providers/issuers/preferred-chains.ts';
import { toKeySegment } from '../../storage/store.ts';
import {
	type IssuedCertificate,
	IssueError,
	type IssueOrder,
	type Issuer,
	issuerSetting,
	type RenewalAdvice,
} from '../issuer.ts';
import type { IssuerDeps } from '../issuer-deps.ts';
import { expandEnvironment } from '../settings-text.ts';
import {
	type AccountSettings,
	type AcmeAccount,
	forgetAccount,
	isUnknownAccount,
	openAccount,
} from './acme-account.ts';
import { AcmeConnection, waitUnlessAborted } from './acme-connection.ts';
import { runOrder } from './acme-order.ts';
import { ChallengeSolver, type ChallengeType, type DnsSolver, ValidationFailed } from './challenge-solver.ts';
import { createDnsSolver } from './dns-solver.ts';
import { fetchBinding } from './fetched-binding.ts';
import { renewalAdvice } from './renewal-information.ts';

/** Default timeout of an order in milliseconds. */
const DEFAULT_ORDER_TIMEOUT_MS = 900_000;
/** Timeout for opening an account in milliseconds. */
const ACCOUNT_TIMEOUT_MS = 120_000;
/** Timeout, in milliseconds, of a check of whether something listens on a port. */
const PORT_CHECK_TIMEOUT_MS = 300;
/** Maximum number of orders in {@link ORDER_WINDOW_MS} milliseconds, because public servers have rate limits. */
const MAX_WINDOW_ORDERS = 20;
const ORDER_WINDOW_MS = 10_000;
/** Directory URLs of known test servers, by the directory URL of the real server. */
const DRY_RUN_DIRECTORIES: { readonly [directory: string]: string } = {
	[DEFAULT_ACME_DIRECTORY]: 'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/** Creates the issuer. Rejects with IssueError if its files cannot be read. */
export async function acmeIssuer(unexpandedSettings: IssuerSettings, deps: IssuerDeps): Promise<Issuer> {
	const settings = expandEnvironment(unexpandedSettings, deps.environment);
	const roots = await Promise.all(
		(issuerSetting<readonly string[]>(settings, 'trusted_roots') ?? []).map(file =>
			readRoot(file, deps.workingDirectory),
		),
	);
	return new AcmeIssuer(settings, roots, deps);
}

/** An ACME server, with the connection to it and the account on it. */
interface Server {
	readonly directory: string;
	/** The path segment that identifies the server in store keys. */
	readonly storeSegment: string;
	readonly connection: AcmeConnection;
	/** The account, possibly still being opened; undefined before that, and after it could not be opened. */
	account: Promise<AcmeAccount> | undefined;
}

class AcmeIssuer implements Issuer {
	readonly kind = 'acme';
	readonly isImmediate = false;
	readonly storeName: string;
	readonly #settings: IssuerSettings;
	readonly #deps: IssuerDeps;
	readonly #server: Server;
	readonly #dryRunServer: Server | undefined;
	readonly #dnsSolver: DnsSolver | undefined;
	/** The times at which the latest orders began, in milliseconds since the epoch. */
	readonly #orderTimes: number[] = [];
	/** The type of the challenge with which the server last validated a name. */
	#acceptedType: ChallengeType | undefined;

	constructor(settings: IssuerSettings, roots: readonly string[], deps: IssuerDeps) {
		this.#settings = settings;
		this.#deps = deps;
		const directory = issuerSetting<string>(settings, 'directory') ?? DEFAULT_ACME_DIRECTORY;
		const dryRunDirectory = issuerSetting<string>(settings, 'test_directory') ?? DRY_RUN_DIRECTORIES[directory];
		this.#server = serverOf(directory, roots);
		this.#dryRunServer = dryRunDirectory === undefined ? undefined : serverOf(dryRunDirectory, roots);
		this.storeName = this.#server.storeSegment;
		this.#dnsSolver = settings.dns === undefined ? undefined : createDnsSolver(settings, deps);
	}

	async issue(order: IssueOrder): Promise<IssuedCertificate> {
		const timeoutMs = issuerSetting<number>(this.#settings, 'timeout') || DEFAULT_ORDER_TIMEOUT_MS;
		const timeoutSignal = AbortSignal.timeout(Math.min(timeoutMs, 2 ** 31 - 1));
		const signal = AbortSignal.any([order.signal, timeoutSignal]);
		try {
			// Failures count against the server's rate limits. After a failure, each attempt first orders from a test server, and then
			// from the real one only if that succeeds.
			if (order.failures > 0 && this.#dryRunServer) {
				await this.#placeOrder(this.#dryRunServer, { ...order, privateKey: undefined, replaces: undefined, signal });
			}
			return await this.#placeOrder(this.#server, { ...order, signal });
		} catch (error) {
			if (!timeoutSignal.aborted || order.signal.aborted) throw error;
			throw new IssueError(
				'issuer/timed-out',
				`The order was not completed within ${Math.round(timeoutMs / 1000)} seconds.`,
			);
		}
	}

	advise(chain: string): Promise<RenewalAdvice | undefined> {
		return renewalAdvice(this.#server.connection, chain, Math.random());
	}

	close(): void {
		this.#server.connection.close();
		this.#dryRunServer?.connection.close();
	}

	/** Orders the certificate, with one challenge type after another until one succeeds. Each attempt is a new order. */
	async #placeOrder(server: Server, order: IssueOrder): Promise<IssuedCertificate> {
		const types = await this.#challengeTypes(order.name);
		let firstFailure: unknown;
		for (const type of types) {
			try {
				await this.#awaitOrderSlot(order.signal);
				const issuedCertificate = await this.#withAccount(server, order, account =>
					runOrder(
						{
							connection: server.connection,
							account,
							store: this.#deps.store,
							server: server.storeSegment,
							solver: new ChallengeSolver({
								connection: server.connection,
								account,
								challenges: this.#deps.challenges,
								sharedChallenges: this.#settings.distributed === false ? undefined : this.#deps.sharedChallenges,
								dnsSolver: this.#dnsSolver,
							}),
							log: this.#deps.log,
							profile: issuerSetting<string>(this.#settings, 'profile'),
							lifetime: issuerSetting<number>(this.#settings, 'lifetime'),
							preferredChains: issuerSetting<PreferredChains>(this.#settings, 'preferred_chains'),
						},
						order,
						type,
					),
				);
				this.#acceptedType = type;
				if (server !== this.#server) await issuedCertificate.onStored?.();
				return issuedCertificate;
			} catch (error) {
				if (!(error instanceof ValidationFailed)) throw error;
				firstFailure ??= error;
				this.#deps.log('warn', 'tls.obtain', 'a name could not be validated', {
					name: order.name,
					server: server.storeSegment,
					challenge: type,
					cause: error.message,
				});
			}
		}
		throw firstFailure;
	}

	/**
	 * Returns the challenge types to try, the most promising first: the type that worked last, then types for whose port this
	 * machine has a listener.
	 */
	async #challengeTypes(name: string): Promise<ChallengeType[]> {
		if (this.#dnsSolver) return ['dns-01'];
		if (name.startsWith('*.')) {
			throw new IssueError(
				'issuer/no-dns',
				`\`${name}\` is a wildcard, which can only be validated with a DNS provider.`,
				{
					isFinal: true,
				},
			);
		}
		const types: ChallengeType[] = [];
		if (this.#settings.disable_http_challenge !== true) types.push('http-01');
		if (this.#settings.disable_tlsalpn_challenge !== true) types.push('tls-alpn-01');
		if (types.length === 0) {
			throw new IssueError('issuer/no-challenge', 'Every challenge type is disabled.', { isFinal: true });
		}
		if (types.length === 1) return types;
		const { http_port: httpPort, https_port: httpsPort } = this.#deps.ports();
		const portSetting = (field: string): number | undefined => issuerSetting<number>(this.#settings, field);
		const [isHttpOpen, isTlsOpen] = await Promise.all([
			isListening(portSetting('alt_http_port') ?? httpPort),
			isListening(portSetting('alt_tlsalpn_port') ?? httpsPort),
		]);
		// Types that are likely to work come first, because a type that fails costs an order, which counts against rate limits.
		const scoreType = (type: ChallengeType): number =>
			(type === this.#acceptedType ? 2 : 0) + ((type === 'http-01' ? isHttpOpen : isTlsOpen) ? 1 : 0);
		return types.sort((a, b) => scoreType(b) - scoreType(a));
	}

	/** Calls `useAccount` with the account. If the server no longer knows the account, registers it again and repeats the call, once. */
	async #withAccount<T>(
		server: Server,
		{ signal }: IssueOrder,
		useAccount: (account: AcmeAccount) => Promise<T>,
	): Promise<T> {
		const account = await untilAborted(this.#openAccount(server), signal);
		try {
			return await useAccount(account);
		} catch (error) {
			if (!isUnknownAccount(error)) throw error;
			server.account = undefined;
			await forgetAccount(this.#deps.store, server.storeSegment, await this.#accountSettings(server));
			return useAccount(await untilAborted(this.#openAccount(server), signal));
		}
	}

	/**
	 * Opens the account, once for all orders that wait for it. If one of these orders is canceled, the account is opened
	 * nevertheless, because the other orders need it.
	 */
	async #openAccount(server: Server): Promise<AcmeAccount> {
		const timeoutSignal = AbortSignal.timeout(ACCOUNT_TIMEOUT_MS);
		server.account ??= this.#accountSettings(server).then(settings =>
			openAccount(server.connection, this.#deps.store, server.storeSegment, settings, timeoutSignal),
		);
		const pendingAccount = server.account;
		try {
			return await pendingAccount;
		} catch (error) {
			if (server.account === pendingAccount) server.account = undefined;
			if (!timeoutSignal.aborted || error instanceof IssueError) throw error;
			throw new IssueError('issuer/timed-out', 'The account could not be opened in time.');
		}
	}

	async #accountSettings(server: Server): Promise<AccountSettings> {
		const email = issuerSetting<string>(this.#settings, 'email');
		const eab = issuerSetting<AccountSettings['eab']>(this.#settings, 'eab');
		return { email, eab: eab ?? (await fetchBinding(server.directory, email, this.#deps.store, server.storeSegment)) };
	}

	/** Waits until another order may be started. */
	async #awaitOrderSlot(signal: AbortSignal): Promise<void> {
		for (;;) {
			const now = Date.now();
			while (this.#orderTimes[0] !== undefined && now - this.#orderTimes[0] >= ORDER_WINDOW_MS)
				this.#orderTimes.shift();
			if (this.#orderTimes.length < MAX_WINDOW_ORDERS) {
				this.#orderTimes.push(now);
				return;
			}
			await waitUnlessAborted(this.#orderTimes[0]! + ORDER_WINDOW_MS - now + 5, signal);
		}
	}
}

/** Resolves like the promise. If the signal aborts first, rejects with its reason. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
	return new Promise((resolve, reject) => {
		const onAbort = (): void => reject(signal.reason);
		if (signal.aborted) onAbort();
		signal.addEventListener('abort', onAbort, { once: true });
		promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
	});
}

/** Reports whether a port of this machine accepts connections. */
function isListening(port: number): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect({ host: '127.0.0.1', port, timeout: PORT_CHECK_TIMEOUT_MS });
		const finish = (listening: boolean): void => {
			socket.destroy();
			resolve(listening);
		};
		socket.once('connect', () => finish(true));
		socket.once('error', () => finish(false));
		socket.once('timeout', () => finish(false));
	});
}

function serverOf(directory: string, roots: readonly string[]): Server {
	const { host, pathname } = new URL(directory);
	return {
		directory,
		storeSegment: toKeySegment(`${host}${pathname === '/' ? '' : pathname.replaceAll('/', '-')}`),
		connection: new AcmeConnection(directory, roots, 'svc'),
		account: undefined,
	};
}

async function readRoot(file: string, folder: string): Promise<string> {
	try {
		return await readFile(path.resolve(folder, file), 'latin1');
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		throw new IssueError('issuer/roots', `The root \`${file}\` cannot be read: ${code}.`);
	}
}
