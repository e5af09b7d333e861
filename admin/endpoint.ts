/** The interface of the Admin API's endpoints. */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import type { HandoverResult } from '../runtime/main/handover/successor-process.ts';
import type { Confirmation, ConfirmationTerms } from './confirmation.ts';
import type { AdminErrorCode } from './errors.ts';

/** A request to hand over to a new process. */
export interface HandoverRequest {
	/** The new process's configuration; undefined for the running configuration. */
	readonly input?: ConfigInput | undefined;
	/** Absolute path of the new process's program; undefined for the running program. */
	readonly binary?: string | undefined;
	/** Milliseconds within which the new process must be ready; undefined for the default. */
	readonly within?: number | undefined;
	/** True to save the configuration for `run --resume` once it is served. */
	readonly shouldSave: boolean;
	/** If set, the new process hands back to a process with the present program and configuration unless it is confirmed. */
	readonly confirm?: ConfirmationTerms | undefined;
}

/** What the Admin API provides to its endpoints. */
export interface AdminContext {
	readonly runtime: RuntimeControl;
	/** The pending load, if any, and its rollback. */
	readonly confirmation: Confirmation;
	/**
	 * Throws AdminError 409 while a load awaits its confirmation, because the configuration to which a rollback returns must not
	 * change.
	 */
	refuseWhilePending(): void;
	/**
	 * Throws AdminError 409 if the machine takes its configuration from its cluster. A configuration loaded through the API would
	 * be reported to the cluster as the publication that it replaces.
	 */
	refuseIfConfiguredByCluster(): void;
	/**
	 * Records the outcome of a change, and saves the configuration for `run --resume`. Must be called for every change. A
	 * `tentative` change is saved only when it is confirmed, so that a server that dies earlier restarts with the previous
	 * configuration. Resolves to the outcome to answer with, which is the given one, with a warning if the configuration could not
	 * be saved.
	 */
	recordChange(x: Exchange, outcome: LoadOutcome, tentative?: boolean): Promise<LoadOutcome>;
	/** Saves a tentative change that has been confirmed. Resolves to warnings for the answer. */
	saveConfirmed(): Promise<DiagnosticReport[]>;
	/** Hands over to another process. Throws AdminError if that fails; this process then continues. */
	handOver(request: HandoverRequest): Promise<Extract<HandoverResult, { result: 'done' }>>;
	/** Requests a graceful stop after this exchange has been answered. */
	stopAfter(x: Exchange): void;
}

/** A function that answers by filling in the response, or throws AdminError. */
export type AdminHandler = (x: Exchange, cx: AdminContext) => void | Promise<void>;

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 uses it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One method of an endpoint, for the server and for the published API description. */
export interface AdminOperation {
	readonly run: AdminHandler;
	/** One sentence that describes the operation. */
	readonly summary: string;
	/** Query parameters, by name. */
	readonly query?: { readonly [name: string]: { readonly description: string; readonly schema: JsonSchema } };
	/** Request fields that the method evaluates. */
	readonly requestFields?: readonly ('If-Match' | 'If-None-Match')[];
	/** Accepted media types, each with the schema of its body. */
	readonly body?: { readonly [mediaType: string]: JsonSchema };
	/**
	 * The media type and schema of the answer with status 200. `otherTypes` are media types that a client can select by `Accept`;
	 * `responseFields` are its response fields.
	 */
	readonly answer: {
		readonly description: string;
		readonly type: string;
		readonly otherTypes?: readonly string[];
		readonly schema: JsonSchema;
		readonly responseFields?: readonly 'Etag'[];
	};
	/** Descriptions of the other answers, which have no body, by status. */
	readonly emptyResponses?: { readonly [status: string]: string };
	/** Errors that the method may cause, in addition to those of every request. */
	readonly errors?: readonly AdminErrorCode[];
}

/** The operations on one path. */
export interface AdminEndpoint {
	/** The path; also its label in metrics and logs. */
	readonly path: string;
	/** True if the endpoint also handles all paths below `path`. */
	readonly includesSubpaths?: boolean;
	/** Paths to show in the API description instead of `path`, each with descriptions of its parameters. */
	readonly describedPaths?: { readonly [path: string]: { readonly [parameter: string]: string } };
	/** The operations by method. For HEAD, the operation for GET is used unless there is one for HEAD. */
	readonly operationsByMethod: { readonly [method: string]: AdminOperation };
}

export function answerJson(x: Exchange, status: number, json: string | SharedArrayBuffer): void {
	x.response.status = status;
	x.response.headers.set('Content-Type', 'application/json');
	x.response.body = typeof json === 'string' ? `${json}\n` : Buffer.from(json);
}
