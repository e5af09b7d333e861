/** What an endpoint of the Admin API is, and how it answers. */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import type { Confirmation } from './confirmation.ts';
import type { AdminErrorCode } from './errors.ts';

/** What endpoints work with. */
export interface AdminContext {
	readonly runtime: RuntimeControl;
	/** The load that may be waiting for its confirmation. */
	readonly confirmation: Confirmation;
	/** Throws AdminError 409 while a load waits for its confirmation: what it would go back to must not change. */
	changeable(): void;
	/**
	 * To be told of every outcome of a change: it is recorded, and saved for `run --resume`. One that is `tentative` is not
	 * saved before it is confirmed: a server that dies meanwhile comes back as it was. Resolves to what is to be answered: the
	 * outcome, with a warning if it could not be saved.
	 */
	changed(x: Exchange, outcome: LoadOutcome, tentative?: boolean): Promise<LoadOutcome>;
	/** A tentative change stays: it is saved. Resolves to warnings for the answer. */
	confirmed(): Promise<DiagnosticReport[]>;
	/** Asks for a graceful stop once this exchange has been answered. */
	stopAfter(x: Exchange): void;
}

/** Answers by filling the response; refuses by throwing AdminError. */
export type AdminMethod = (x: Exchange, cx: AdminContext) => void | Promise<void>;

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 takes them. */
export type AnswerSchema = { readonly [keyword: string]: unknown };

/** What a request of one method does, for the server and for the published description of the API. */
export interface AdminOperation {
	readonly run: AdminMethod;
	/** One sentence. */
	readonly summary: string;
	/** Parameters of the query, by name. */
	readonly query?: { readonly [name: string]: { readonly description: string; readonly schema: AnswerSchema } };
	/** Fields of the request that it looks at. */
	readonly fields?: readonly ('If-Match' | 'If-None-Match')[];
	/** Media types that it takes, each with what the body is. */
	readonly body?: { readonly [mediaType: string]: AnswerSchema };
	/** Media type and schema of the answer with 200; `others` are types that `Accept` may ask for, `fields` those that it carries. */
	readonly answer: {
		readonly description: string;
		readonly type: string;
		readonly others?: readonly string[];
		readonly schema: AnswerSchema;
		readonly fields?: readonly 'Etag'[];
	};
	/** Other answers without a body. */
	readonly empty?: { readonly [status: string]: string };
	/** Errors beside those of every request. */
	readonly errors?: readonly AdminErrorCode[];
}

/** A group of requests that share a path. */
export interface AdminEndpoint {
	/** The path, and its name in metrics and logs. */
	readonly path: string;
	/** True if everything below the path belongs to it too. */
	readonly below?: boolean;
	/** Paths of the description when they are not `path`, with what their parameters are. */
	readonly described?: { readonly [path: string]: { readonly [parameter: string]: string } };
	/** By method. HEAD is GET's where it is not named. */
	readonly methods: { readonly [method: string]: AdminOperation };
}

/** Answers with JSON text. */
export function answerJson(x: Exchange, status: number, json: string | SharedArrayBuffer): void {
	x.response.status = status;
	x.response.headers.set('Content-Type', 'application/json');
	x.response.body = typeof json === 'string' ? `${json}\n` : Buffer.from(json);
}
