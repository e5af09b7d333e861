/** The orders and authorizations of an ACME server. They are kept in memory and expire after a day. */
import { randomBytes } from 'node:crypto';
import { AcmeRefusal } from './acme-refusal.ts';

/** The subject of a certificate. */
export interface Identifier {
	readonly type: 'dns' | 'ip';
	readonly value: string;
}

/** A challenge and its result. */
export interface Challenge {
	readonly type: string;
	readonly token: string;
	status: 'pending' | 'processing' | 'valid' | 'invalid';
	validated?: string;
	error?: object;
}

/** The authorization to have one name certified. */
export interface Authorization {
	readonly id: string;
	readonly account: string;
	readonly identifier: Identifier;
	readonly wildcard: boolean;
	readonly expires: number;
	readonly challenges: readonly Challenge[];
	status: 'pending' | 'valid' | 'invalid' | 'deactivated';
}

/** An ACME order (RFC 8555 §7.1.3). */
export interface Order {
	readonly id: string;
	readonly account: string;
	readonly identifiers: readonly Identifier[];
	readonly authorizations: readonly Authorization[];
	readonly expires: number;
	/** The certificate chain in PEM, once it has been issued. */
	certificate?: string;
	error?: object;
}

/** Milliseconds until orders and their authorizations expire. */
const ORDER_LIFE = 86_400_000;
/** Maximum number of orders at a time in total. */
const MAX_ORDERS = 10_000;
/** Maximum number of orders of one account at a time. */
const MAX_OF_ONE = 500;

/** The orders of one CA. */
export class OrderRegistry {
	readonly #orders = new Map<string, Order>();
	readonly #authorizations = new Map<string, Authorization>();
	readonly #counts = new Map<string, number>();

	/** Creates an order. Throws {@link AcmeRefusal} if there are too many. */
	create(account: string, identifiers: readonly Identifier[], types: (wildcard: boolean) => readonly string[]): Order {
		this.#sweep();
		const count = this.#counts.get(account) ?? 0;
		if (this.#orders.size >= MAX_ORDERS || count >= MAX_OF_ONE) {
			throw new AcmeRefusal('rateLimited', 429, 'There are too many orders at the moment.');
		}
		const expires = Date.now() + ORDER_LIFE;
		const authorizations = identifiers.map(({ type, value }) => {
			const wildcard = value.startsWith('*.');
			const token = randomBytes(24).toString('base64url');
			const authorization: Authorization = {
				id: randomBytes(12).toString('base64url'),
				account,
				identifier: { type, value: wildcard ? value.slice(2) : value },
				wildcard,
				expires,
				challenges: types(wildcard).map(kind => ({ type: kind, token, status: 'pending' })),
				status: 'pending',
			};
			this.#authorizations.set(authorization.id, authorization);
			return authorization;
		});
		const order: Order = { id: randomBytes(12).toString('base64url'), account, identifiers, authorizations, expires };
		this.#orders.set(order.id, order);
		this.#counts.set(account, count + 1);
		return order;
	}

	/** Returns an order, or undefined if the account has no such order. */
	order(id: string, account: string): Order | undefined {
		const order = this.#orders.get(id);
		return order?.account === account && order.expires > Date.now() ? order : undefined;
	}

	/** Returns an authorization, or undefined if the account has no such authorization. */
	authorization(id: string, account: string): Authorization | undefined {
		const authorization = this.#authorizations.get(id);
		return authorization?.account === account && authorization.expires > Date.now() ? authorization : undefined;
	}

	/** Returns the orders of an account, oldest first. */
	ofAccount(account: string): Order[] {
		return [...this.#orders.values()].filter(order => order.account === account);
	}

	/** Removes expired orders. Orders are sorted by expiry. */
	#sweep(): void {
		const now = Date.now();
		for (const order of this.#orders.values()) {
			if (order.expires > now) return;
			this.#orders.delete(order.id);
			for (const { id } of order.authorizations) this.#authorizations.delete(id);
			const remaining = (this.#counts.get(order.account) ?? 1) - 1;
			if (remaining > 0) this.#counts.set(order.account, remaining);
			else this.#counts.delete(order.account);
		}
	}
}

/** Returns the state of an order (RFC 8555 §7.1.6). */
export function orderStatus({ certificate, error, authorizations }: Order): 'pending' | 'ready' | 'valid' | 'invalid' {
	if (certificate !== undefined) return 'valid';
	if (error !== undefined || authorizations.some(({ status }) => status === 'invalid' || status === 'deactivated')) {
		return 'invalid';
	}
	return authorizations.every(({ status }) => status === 'valid') ? 'ready' : 'pending';
}
