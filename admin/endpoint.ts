/** What an endpoint of the Admin API is, and how it answers. */
import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { LoadOutcome, RuntimeControl } from '../runtime/control.ts';
import type { Confirmation } from './confirmation.ts';

/** What endpoints work with. */
export interface AdminContext {
	readonly runtime: RuntimeControl;
	/** The load that may be waiting for its confirmation. */
	readonly confirmation: Confirmation;
	/** Throws AdminError 409 while a load waits for its confirmation: what it would go back to must not change. */
	changeable(): void;
	/** To be told of every outcome of a change: it is recorded, and saved for `run --resume`. */
	changed(x: Exchange, outcome: LoadOutcome): void;
	/** Asks for a graceful stop once this exchange has been answered. */
	stopAfter(x: Exchange): void;
}

/** Answers by filling the response; refuses by throwing AdminError. */
export type AdminMethod = (x: Exchange, cx: AdminContext) => void | Promise<void>;

/** A group of requests that share a path. */
export interface AdminEndpoint {
	/** The path, and its name in metrics and logs. */
	readonly path: string;
	/** True if everything below the path belongs to it too. */
	readonly below?: boolean;
	/** By method. HEAD is GET's where it is not named. */
	readonly methods: { readonly [method: string]: AdminMethod };
}

/** Answers with JSON text. */
export function answerJson(x: Exchange, status: number, json: string): void {
	x.response.status = status;
	x.response.headers.set('Content-Type', 'application/json');
	x.response.body = `${json}\n`;
}
