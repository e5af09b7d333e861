/** Why a request is answered as it is, as plain JSON: what `svc explain` prints. */
import type { Compiled } from '../compiler.ts';
import type { Document, Matcher } from '../document/document.ts';
import { isSecretHeader } from '../document/secret-names.ts';
import { REDACTED } from '../document/secret-parts.ts';
import { findSecrets, pointerOf, redact } from '../document/secrets.ts';
import { valueAt } from '../document/validate.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { SentRequest } from '../dry-run/fake-exchange.ts';
import { siteReason } from '../dry-run/listener-choice.ts';
import type { HeaderList } from '../exchange/header-list.ts';
import { GraphTracer, type MatcherEvent, type RequestTarget, type Trace, type TraceEvent } from './graph-tracer.ts';
import { matcherText } from './matcher-text.ts';

/** A place in the document, and in the text where the document came from one. */
export interface ExplainedPlace {
	/** RFC 6901. */
	readonly pointer: string;
	readonly file?: string;
	/** Both begin at 1. */
	readonly line?: number;
	readonly column?: number;
	/** The first line of what stands there. */
	readonly text?: string;
}

/** A matcher and its verdict. */
export interface ExplainedMatcher {
	readonly kind: 'matcher';
	readonly place: ExplainedPlace;
	readonly matcher: string;
	/** Null when it failed. */
	readonly holds: boolean | null;
	/** Matchers inside of it that were asked. */
	readonly parts?: readonly ExplainedMatcher[];
}

/** One thing that happened on the way. */
export type ExplainedStep =
	| ExplainedMatcher
	| {
			readonly kind: 'handler';
			readonly place: ExplainedPlace;
			readonly handler: string;
			readonly rewrite?: { readonly before: RequestTarget; readonly after: RequestTarget };
	  }
	| { readonly kind: 'failure'; readonly place: ExplainedPlace; readonly status: number; readonly message: string };

/** The upstream that was chosen, and what it was asked. */
export interface ExplainedUpstream {
	readonly name?: string;
	readonly address: string;
	/** Number of addresses that the choice was among, and the policy that made it. */
	readonly among: number;
	readonly policy: string;
	readonly method: string;
	readonly target: string;
	/** Values of credentials are hidden. */
	readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The whole way of a request. */
export interface Explanation {
	readonly request: { readonly method: string; readonly url: string; readonly from: string };
	readonly listener: { readonly scheme: string; readonly host: string; readonly port: number };
	/** Null when no site of the listener takes the request. */
	readonly site: {
		readonly address: string;
		readonly reason: 'exact_host' | 'wildcard_host' | 'any_host';
		/** A sentence without its full stop. */
		readonly because: string;
		readonly place: ExplainedPlace;
	} | null;
	readonly steps: readonly ExplainedStep[];
	readonly upstreams: readonly ExplainedUpstream[];
	/** Null when the connection is dropped. With an upstream: as if it had answered 200 with nothing. */
	readonly answer: {
		readonly status: number;
		/** '' when no handler answered. */
		readonly handler: string;
		readonly place?: ExplainedPlace;
		readonly headers: readonly (readonly [name: string, value: string])[];
		/** The error that no error route answered. */
		readonly error?: string;
	} | null;
}

/** A request that was answered, with its explanation. */
export interface Explained {
	readonly rehearsed: DryRunResult;
	readonly explanation: Explanation;
}

/** What is needed of a compiled configuration. */
export interface ExplainedConfiguration extends Pick<Compiled, 'locate'> {
	readonly plan: NonNullable<Compiled['plan']>;
}

/** Explains requests of one configuration: the graph that would be served, watched. */
export class Explainer {
	readonly #tracer = new GraphTracer();
	readonly #dryRun: DryRun;
	readonly #locate: Compiled['locate'];
	/** What is shown comes from here. */
	readonly #document: Document;
	/** The secrets of the document, longer ones first, each with the pointer of the text that holds it. */
	readonly #secrets: readonly { readonly pointer: string; readonly text: string }[];

	constructor({ plan, locate }: ExplainedConfiguration, deps: DryRunEnvironment) {
		this.#dryRun = new DryRun(plan, deps, this.#tracer);
		this.#locate = locate;
		this.#document = redact(plan.document);
		this.#secrets = findSecrets(plan.document)
			.flatMap(({ path, parts }) => {
				const pointer = pointerOf(path);
				const value = String(valueAt(plan.document, pointer));
				return parts.map(({ start, end }) => ({ pointer, text: value.slice(start, end) }));
			})
			.sort((a, b) => b.text.length - a.text.length);
	}

	/** Answers a request and says why; undefined where nothing listens. The caller closes the response. */
	async explain(request: DryRunRequest): Promise<Explained | undefined> {
		const rehearsed = await this.#dryRun.run(request);
		if (!rehearsed) return undefined;
		const trace = this.#tracer.traceOf(rehearsed.exchange);
		return { rehearsed, explanation: this.#explanation(request, rehearsed, trace) };
	}

	#explanation({ method, url, from }: DryRunRequest, rehearsed: DryRunResult, trace: Trace | undefined): Explanation {
		const { listener, site, exchange: x } = rehearsed;
		const { scheme, host, port } = listener;
		return {
			request: { method, url: url.text, from: from ?? x.connection.remoteAddress },
			listener: { scheme, host, port },
			site: site === -1 ? null : this.#site(rehearsed),
			steps: (trace?.events ?? []).map(event => this.#step(event)),
			upstreams: x.sent.map(explainedUpstream),
			answer: this.#answer(rehearsed, trace),
		};
	}

	#site({ listener, site, exchange }: DryRunResult): Explanation['site'] {
		const { kind, text } = siteReason(listener, site, exchange.request.host);
		const address = this.#document.sites![site]!.addresses[0]!;
		return { address, reason: kind, because: text, place: this.#place(`/sites/${site}`) };
	}

	#step(event: TraceEvent): ExplainedStep {
		switch (event.kind) {
			case 'matcher':
				return this.#matcher(event);
			case 'handler': {
				const { pointer, handler, change } = event;
				const step = { kind: 'handler', place: this.#place(pointer), handler } as const;
				return change ? { ...step, rewrite: change } : step;
			}
			case 'failure': {
				const { pointer, status, message } = event;
				return { kind: 'failure', place: this.#place(pointer), status, message };
			}
		}
	}

	#matcher({ pointer, matcher, holds, parts }: MatcherEvent): ExplainedMatcher {
		const shown = (valueAt(this.#document, pointer) as Matcher | undefined) ?? matcher;
		return {
			kind: 'matcher',
			place: this.#place(pointer),
			matcher: matcherText(shown),
			holds: holds ?? null,
			...(parts.length > 0 ? { parts: parts.map(part => this.#matcher(part)) } : {}),
		};
	}

	#answer({ exchange: x, response, failure }: DryRunResult, trace: Trace | undefined): Explanation['answer'] {
		if (!response) return null;
		const place = trace?.answer && this.#place(trace.answer.pointer);
		return {
			status: response.status,
			handler: failure === undefined ? x.answeredBy : '',
			...(place && failure === undefined ? { place } : {}),
			headers: shownFields(response.headers),
			...(failure === undefined ? {} : { error: x.error?.message ?? '' }),
		};
	}

	#place(pointer: string): ExplainedPlace {
		const span = this.#locate(pointer);
		if (!span) return { pointer };
		const { line, column } = span.source.position(span.start);
		const text = span.source.text
			.slice(span.start, span.end)
			.split('\n', 1)[0]!
			.replace(/\s*\{?\s*$/, '');
		return { pointer, file: span.source.name, line, column, text: this.#hide(text, pointer) };
	}

	/** The text of an object without the secrets that the object holds. */
	#hide(text: string, pointer: string): string {
		let shown = text;
		for (const secret of this.#secrets) {
			if (secret.pointer.startsWith(`${pointer}/`)) shown = shown.replaceAll(secret.text, () => REDACTED);
		}
		return shown;
	}
}

function explainedUpstream({ settings, upstream, request }: SentRequest): ExplainedUpstream {
	return {
		...(settings.name === undefined ? {} : { name: settings.name }),
		address: upstream.address,
		among: settings.to.length,
		policy: settings.balance?.policy ?? 'random',
		method: request.method,
		target: request.target,
		headers: shownFields(request.headers),
	};
}

function shownFields(headers: HeaderList): [string, string][] {
	return [...headers].map(([name, value]) => [name, isSecretHeader(name) ? REDACTED : value]);
}
