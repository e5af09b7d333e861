/** Assumptions about upstreams and limits, under which two configurations are compared. */
import type { Document } from '../document/document.ts';
import { type ScriptedAnswer, type UpstreamAnswer, UpstreamScript } from '../dry-run/fake-exchange.ts';

/** The assumed behavior of upstreams, and the limits that the client is assumed to have reached. */
export interface UpstreamAssumption extends UpstreamAnswer {
	/**
	 * Address of the only upstream that behaves as assumed, while all others answer 200; undefined if all upstreams behave as
	 * assumed.
	 */
	readonly of?: string;
	/** True if upstreams behave as assumed for the first request only, and answer later ones with 200. */
	readonly once?: boolean;
	/** Name of the rate-limit zone in which the client has no requests left. */
	readonly exceeds?: string;
	/** Name of the concurrency-limit zone that is full. */
	readonly busy?: string;
}

/** Returns a script that makes fake upstreams and limits behave as assumed. */
export function scriptOf(assumption: UpstreamAssumption): UpstreamScript {
	const { of, once, headers, exceeds, busy } = assumption;
	const usualAnswer: UpstreamAnswer = { status: 200, body: '', ...(headers && { headers }) };
	const answers: ScriptedAnswer[] = [{ upstreamName: of, answer: assumption }];
	if (once) answers.push({ upstreamName: of, answer: usualAnswer });
	if (of !== undefined) answers.push({ upstreamName: undefined, answer: usualAnswer });
	return new UpstreamScript(answers, exceeds, busy === undefined ? [] : [busy]);
}

/**
 * Returns the assumptions in the order in which they are tried: first a 200 without a body, then answers that response matchers
 * and error routes distinguish, then failures that the settings of a pool handle. `headers` are the header fields of all answers
 * except the first.
 */
export function upstreamAssumptions(
	documents: readonly Document[],
	headers: readonly (readonly [name: string, value: string])[],
): readonly UpstreamAssumption[] {
	const documentsJson = JSON.stringify(documents);
	const hasSetting = (...settings: readonly string[]): boolean =>
		settings.some(name => documentsJson.includes(`"${name}":`));
	const failures: UpstreamAssumption[] = [
		{ status: 502, body: '', unreachable: true },
		{ status: 504, body: '', unreachable: true, timesOut: true },
	];
	// An upstream that never answers is assumed only if there is a time limit; otherwise the client would wait forever.
	if (hasSetting('response_header_timeout', 'read_timeout')) failures.push({ status: 504, body: '', timesOut: true });
	if (hasSetting('retries', 'retry_duration')) {
		// A failure after the request was sent is tried as well, because whether a retry is allowed depends on how far the first
		// attempt got.
		failures.push({ status: 502, body: '', disconnects: true });
		failures.push(...failures.map((failure): UpstreamAssumption => ({ ...failure, headers, once: true })));
	}
	if (hasSetting('health', 'fail_duration', 'circuit')) failures.push({ status: 503, body: '', unavailable: true });
	return [
		{ status: 200, body: '' },
		{ status: 200, body: 'from the upstream', headers },
		...distinguishedStatuses(documentsJson).map(status => ({ status, body: '', headers })),
		...failures,
	];
}

/**
 * Returns the statuses that response matchers, error routes and expressions distinguish, together with 404 and 500. `documents` is
 * the JSON text of the documents.
 */
function distinguishedStatuses(documentsJson: string): readonly number[] {
	const statuses = new Set([404, 500]);
	for (const [, list] of documentsJson.matchAll(/"status":\[([^\]]*)\]/g)) {
		for (const [, text] of list!.matchAll(/"([1-5](?:\d\d|xx)?)"/g)) {
			statuses.add(text!.length === 3 && !text!.endsWith('xx') ? Number(text) : Number(text![0]) * 100 + 3);
		}
	}
	for (const [expression] of documentsJson.matchAll(/"expression":"(?:[^"\\]|\\.)*"/g)) {
		if (!expression.includes('status')) continue;
		for (const [text] of expression.matchAll(/\b[1-5]\d\d\b/g)) {
			for (const difference of [-1, 0, 1]) statuses.add(Number(text) + difference);
		}
	}
	return [...statuses].filter(status => status >= 200 && status < 600);
}

/** Returns a clause that describes the assumption, such as `if the upstream answers 404`. */
export function assumptionText(assumption: UpstreamAssumption): string {
	const { status, unreachable, timesOut, disconnects, unavailable, of, once, exceeds, busy, headers = [] } = assumption;
	if (exceeds !== undefined) return `if the rate limit \`${exceeds}\` is exceeded`;
	if (busy !== undefined) return `if no place of the zone \`${busy}\` is free`;
	const timing = once ? ' at first' : '';
	const subject = of ?? 'the upstream';
	if (unavailable) return of === undefined ? 'if no upstream is available' : `if ${of} is not available`;
	if (unreachable && timesOut) return `if connecting to ${subject} takes too long${timing}`;
	if (unreachable && of === undefined && !once) return 'if no upstream can be reached';
	if (unreachable) return `if ${subject} cannot be reached${timing}`;
	if (timesOut) return `if ${subject} does not answer in time${timing}`;
	if (disconnects) return `if ${subject} closes the connection without an answer${timing}`;
	const fieldsText = headers.map(([name, value]) => `\`${name}: ${value}\``).join(', ');
	return `if ${subject} answers ${status}${fieldsText === '' ? '' : ` with ${fieldsText}`}${timing}`;
}
