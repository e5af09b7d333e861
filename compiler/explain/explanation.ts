/** Explains how a request is answered and why, as plain JSON: the output of `svc explain`. */
import type { CompileResult } from '../compiler.ts';
import type { Document, Matcher, Step } from '../document/document.ts';
import { valueAt } from '../document/json-pointer.ts';
import { isSecretHeader } from '../document/secret-names.ts';
import { REDACTED } from '../document/secret-parts.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { RequestToUpstream, UpstreamAnswer, UpstreamScript } from '../dry-run/fake-exchange.ts';
import { siteReason } from '../dry-run/listener-choice.ts';
import type { HeaderList } from '../exchange/header-list.ts';
import { shedBounds } from '../modules/directives/reverse-proxy/shed-settings.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { findSecrets, jsonPointer, redactSecrets } from '../schema/secrets.ts';
import {
	type GraphTrace,
	GraphTracer,
	type MatcherEvent,
	type RequestTarget,
	type TraceEvent,
} from './graph-tracer.ts';
import { matcherText } from './matcher-text.ts';

/** A place in the document and, if the document was compiled from text, in the text. */
export interface ExplainedPlace {
	/** JSON pointer (RFC 6901) to the place in the document. */
	readonly pointer: string;
	readonly file?: string;
	/** The line, starting at 1. */
	readonly line?: number;
	/** The column, starting at 1. */
	readonly column?: number;
	/** The first line of the text at this place. */
	readonly text?: string;
}

/** A matcher that was evaluated, with its result. */
export interface ExplainedMatcher {
	readonly kind: 'matcher';
	readonly place: ExplainedPlace;
	readonly matcher: string;
	/** Whether the matcher holds; null if evaluating it failed. */
	readonly holds: boolean | null;
	/** The nested matchers that were evaluated. */
	readonly parts?: readonly ExplainedMatcher[];
}

/** One event in the handling of the request. */
export type ExplainedStep =
	| ExplainedMatcher
	| {
			readonly kind: 'handler';
			readonly place: ExplainedPlace;
			readonly handler: string;
			readonly rewrite?: { readonly before: RequestTarget; readonly after: RequestTarget };
			/** The zones in which the request is counted, if the step limits requests. */
			readonly limits?: readonly ExplainedLimit[];
	  }
	| { readonly kind: 'failure'; readonly place: ExplainedPlace; readonly status: number; readonly message: string };

/** A zone of a limit, and the key by which it counts requests, with placeholders. */
export interface ExplainedLimit {
	readonly zone: string;
	readonly key: string;
}

/** The chosen upstream and the request sent to it. */
export interface ExplainedUpstream {
	readonly name?: string;
	readonly address: string;
	/** True if the upstream was chosen only because none of the others was available. */
	readonly backup?: true;
	/** Number of addresses from which the policy chose. */
	readonly among: number;
	/** The load-balancing policy that chose an address. */
	readonly policy: string;
	/** The bounds of the adaptive limit of concurrent requests; omitted without `shed`. */
	readonly shed?: { readonly min: number; readonly max: number };
	readonly method: string;
	readonly target: string;
	/** The fields of the upstream request. Values of credentials are redacted. */
	readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The complete explanation of a request. */
export interface Explanation {
	readonly request: { readonly method: string; readonly url: string; readonly from: string };
	readonly listener: { readonly scheme: string; readonly host: string; readonly port: number };
	/** The site that serves the request; null if no site of the listener does. */
	readonly site: {
		readonly address: string;
		readonly reason: 'exact_host' | 'wildcard_host' | 'any_host';
		/** Why the site was chosen: a sentence without its period. */
		readonly because: string;
		readonly place: ExplainedPlace;
	} | null;
	readonly steps: readonly ExplainedStep[];
	readonly upstreams: readonly ExplainedUpstream[];
	/** The copies that mirrors receive; omitted if there are none. */
	readonly mirrors?: readonly ExplainedUpstream[];
	/**
	 * The answer; null if the connection is closed. If an upstream is involved, it is assumed to have answered 200 with an empty
	 * body.
	 */
	readonly answer: {
		readonly status: number;
		/** The handler that answered; '' if none did. */
		readonly handler: string;
		readonly place?: ExplainedPlace;
		readonly headers: readonly (readonly [name: string, value: string])[];
		/** The error that no error route handled. */
		readonly error?: string;
	} | null;
}

/** A request's result with its explanation. */
export interface ExplainedResult {
	readonly result: DryRunResult;
	readonly explanation: Explanation;
}

/** The parts of a compiled configuration that the explainer needs. */
export interface ExplainedConfiguration extends Pick<CompileResult, 'locate'> {
	readonly plan: NonNullable<CompileResult['plan']>;
}

/** Explains requests to one configuration. Builds the handler graph that a server would use, and traces it. */
export class Explainer {
	readonly #tracer = new GraphTracer();
	readonly #dryRun: DryRun;
	readonly #locate: CompileResult['locate'];
	/** The document from which explanations quote. */
	readonly #document: Document;
	/** The secrets of the document, longest first. Each has the pointer of the string that contains it. */
	readonly #secrets: readonly { readonly pointer: string; readonly text: string }[];

	constructor({ plan, locate }: ExplainedConfiguration, deps: DryRunEnvironment) {
		this.#dryRun = new DryRun(plan, deps, this.#tracer);
		this.#locate = locate;
		this.#document = redactSecrets(plan.document);
		this.#secrets = findSecrets(plan.document)
			.flatMap(({ path, parts }) => {
				const pointer = jsonPointer(path);
				const value = String(valueAt(plan.document, pointer));
				return parts.map(({ start, end }) => ({ pointer, text: value.slice(start, end) }));
			})
			.sort((a, b) => b.text.length - a.text.length);
	}

	/** Answers and explains a request; undefined if nothing listens at its URL. The caller must close the response. */
	async explain(
		request: DryRunRequest,
		upstream?: UpstreamAnswer | UpstreamScript,
	): Promise<ExplainedResult | undefined> {
		const result = await this.#dryRun.run(request, upstream);
		if (!result) return undefined;
		const trace = this.#tracer.traceOf(result.exchange);
		return { result, explanation: this.#buildExplanation(request, result, trace) };
	}

	#buildExplanation(
		{ method, url, from }: DryRunRequest,
		result: DryRunResult,
		trace: GraphTrace | undefined,
	): Explanation {
		const { listener, site, exchange: x } = result;
		const { scheme, host, port } = listener;
		return {
			request: { method, url: url.text, from: from ?? x.connection.remoteAddress },
			listener: { scheme, host, port },
			site: site === -1 ? null : this.#explainSite(result),
			steps: (trace?.events ?? []).map(event => this.#explainStep(event)),
			upstreams: x.upstreamRequests.map(explainUpstream),
			...(x.mirroredRequests.length > 0 && { mirrors: x.mirroredRequests.map(explainUpstream) }),
			answer: this.#explainAnswer(result, trace),
		};
	}

	#explainSite({ listener, site, exchange }: DryRunResult): Explanation['site'] {
		const { kind, text } = siteReason(listener, site, exchange.request.host);
		const address = this.#document.sites![site]!.addresses[0]!;
		return { address, reason: kind, because: text, place: this.#explainPlace(`/sites/${site}`) };
	}

	#explainStep(event: TraceEvent): ExplainedStep {
		switch (event.kind) {
			case 'matcher':
				return this.#explainMatcher(event);
			case 'handler': {
				const { pointer, handler, targetChange } = event;
				const step = { kind: 'handler', place: this.#explainPlace(pointer), handler } as const;
				const limits = this.#explainLimits(pointer, handler);
				return { ...step, ...(limits.length > 0 && { limits }), ...(targetChange && { rewrite: targetChange }) };
			}
			case 'failure': {
				const { pointer, status, message } = event;
				return { kind: 'failure', place: this.#explainPlace(pointer), status, message };
			}
		}
	}

	/** Returns the zones of a step that limits requests by key. */
	#explainLimits(pointer: string, handler: string): ExplainedLimit[] {
		const limitKeysOf = HANDLERS.get(handler)?.limitKeysOf;
		const step = limitKeysOf && (valueAt(this.#document, pointer) as Step | undefined);
		if (!step) return [];
		return limitKeysOf(step).map(key => ({
			zone: String(valueAt(step, key.pointer.replace(/\/key$/, '/name'))),
			key: key.text,
		}));
	}

	#explainMatcher({ pointer, matcher, holds, parts }: MatcherEvent): ExplainedMatcher {
		// The document has no separate object for a matcher inside an expression: its pointer leads to the text of the expression.
		const documentMatcher = valueAt(this.#document, pointer);
		const shownMatcher =
			typeof documentMatcher === 'object' && documentMatcher !== null ? (documentMatcher as Matcher) : matcher;
		return {
			kind: 'matcher',
			place: this.#explainPlace(pointer),
			matcher: matcherText(shownMatcher),
			holds: holds ?? null,
			...(parts.length > 0 ? { parts: parts.map(part => this.#explainMatcher(part)) } : {}),
		};
	}

	#explainAnswer(
		{ exchange: x, response, failure }: DryRunResult,
		trace: GraphTrace | undefined,
	): Explanation['answer'] {
		if (!response) return null;
		const place = trace?.answeringHandler && this.#explainPlace(trace.answeringHandler.pointer);
		return {
			status: response.status,
			handler: failure === undefined ? x.answeredBy : '',
			...(place && failure === undefined ? { place } : {}),
			headers: redactedFields(response.headers),
			...(failure === undefined ? {} : { error: x.error?.message ?? '' }),
		};
	}

	#explainPlace(pointer: string): ExplainedPlace {
		const span = this.#locate(pointer);
		if (!span) return { pointer };
		const { line, column } = span.source.position(span.start);
		const quotedText = span.source.text
			.slice(span.start, span.end)
			.split('\n', 1)[0]!
			.replace(/\s*\{?\s*$/, '');
		return { pointer, file: span.source.name, line, column, text: this.#hideSecrets(quotedText, pointer) };
	}

	/** Removes an object's secrets from its text. */
	#hideSecrets(text: string, pointer: string): string {
		let redactedText = text;
		for (const secret of this.#secrets) {
			if (secret.pointer.startsWith(`${pointer}/`)) redactedText = redactedText.replaceAll(secret.text, () => REDACTED);
		}
		return redactedText;
	}
}

function explainUpstream({ settings, upstream, request }: RequestToUpstream): ExplainedUpstream {
	return {
		...(settings.name === undefined ? {} : { name: settings.name }),
		address: upstream.address,
		...(settings.backup?.some(text => upstream.address === text || `${upstream.host}:${upstream.port}` === text) && {
			backup: true as const,
		}),
		among: settings.to.length,
		policy: settings.balance?.policy ?? 'random',
		...(settings.shed && { shed: shedBounds(settings.shed) }),
		method: request.method,
		target: request.target,
		headers: redactedFields(request.headers),
	};
}

function redactedFields(headers: HeaderList): [string, string][] {
	return [...headers].map(([name, value]) => [name, isSecretHeader(name) ? REDACTED : value]);
}
