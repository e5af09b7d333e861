/** The orders and authorizations of an ACME server. They are kept in memory and expire after a day. */
import { randomBytes } from 'node:crypto';
import { AcmeRefusal } from './acme-refusal.ts';

/** A name or address to certify. */
export interface Identifier {
	readonly type: 'dns' | 'ip';
	readonly value: string;
}

/** A challenge and its result. */
export interface Challenge {
	readonly type: string;
	readonly token: string;
	status: 'pending' | 'processing' | 'valid' | 'invalid';
	/** Time of the successful validation, in ISO 8601 format. */
	validated?: string;
	/** The problem document of the failed validation. */
	error?: object;
}

/** The authorization to have one name certified. */
export interface Authorization {
	readonly id: string;
	readonly account: string;
	readonly identifier: Identifier;
	readonly wildcard: boolean;
	/** Time of expiry, in milliseconds since the epoch. */
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
	/** Time of expiry, in milliseconds since the epoch. */
	readonly expires: number;
	/** The certificate chain in PEM, once it has been issued. */
	certificate?: string;
	error?: object;
}

/** Milliseconds until orders and their authorizations expire. */
const ORDER_LIFETIME_MS = 86_400_000;
/** Maximum number of orders at a time in total. */
const MAX_ORDERS = 10_000;
/** Maximum number of orders of one account at a time. */
const MAX_ORDERS_PER_ACCOUNT = 500;

/** The orders of one CA. */
export class OrderRegistry {
	readonly #orders = new Map<string, Order>();
	readonly #authorizations = new Map<string, Authorization>();
	/** Number of orders by account ID. */
	readonly #orderCounts = new Map<string, number>();

	/**
	 * Creates an order. Throws {@link AcmeRefusal} if there are too many orders.
	 * @param challengeTypesOf Returns the types of challenge to offer for a name.
	 */
	createOrder(
		account: string,
		identifiers: readonly Identifier[],
		challengeTypesOf: (wildcard: boolean) => readonly string[],
	): Order {
		this.#removeExpired();
		const accountOrderCount = this.#orderCounts.get(account) ?? 0;
		if (this.#orders.size >= MAX_ORDERS || accountOrderCount >= MAX_ORDERS_PER_ACCOUNT) {
			throw new AcmeRefusal('rateLimited', 429, 'There are too many orders at the moment.');
		}
		const expires = Date.now() + ORDER_LIFETIME_MS;
		const authorizations = identifiers.map(({ type, value }) => {
			const wildcard = value.startsWith('*.');
			const token = randomBytes(24).toString('base64url');
			const authorization: Authorization = {
				id: randomBytes(12).toString('base64url'),
				account,
				identifier: { type, value: wildcard ? value.slice(2) : value },
				wildcard,
				expires,
				challenges: challengeTypesOf(wildcard).map(kind => ({ type: kind, token, status: 'pending' })),
				status: 'pending',
			};
			this.#authorizations.set(authorization.id, authorization);
			return authorization;
		});
		const order: Order = { id: randomBytes(12).toString('base64url'), account, identifiers, authorizations, expires };
		this.#orders.set(order.id, order);
		this.#orderCounts.set(account, accountOrderCount + 1);
		return order;
	}

	/** Returns an order, or undefined if the account has no such order. */
	findOrder(id: string, account: string): Order | undefined {
		const order = this.#orders.get(id);
		return order?.account === account && order.expires > Date.now() ? order : undefined;
	}

	/** Returns an authorization, or undefined if the account has no such authorization. */
	findAuthorization(id: string, account: string): Authorization | undefined {
		const authorization = this.#authorizations.get(id);
		return authorization?.account === account && authorization.expires > Date.now() ? authorization : undefined;
	}

	/** Returns the orders of an account, oldest first. */
	ofAccount(account: string): Order[] {
		return [...this.#orders.values()].filter(order => order.account === account);
	}

	/** Removes expired orders. All orders have the same lifetime, so the oldest expire first. */
	#removeExpired(): void {
		const now = Date.now();
		for (const order of this.#orders.values()) {
			if (order.expires > now) return;
			this.#orders.delete(order.id);
			for (const { id } of order.authorizations) this.#authorizations.delete(id);
			const remainingOrders = (this.#orderCounts.get(order.account) ?? 1) - 1;
			if (remainingOrders > 0) this.#orderCounts.set(order.account, remainingOrders);
			else this.#orderCounts.delete(order.account);
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
