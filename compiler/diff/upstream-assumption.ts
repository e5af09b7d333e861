/** What upstreams and limits are assumed to do while two configurations are compared. */
import type { Document } from '../document/document.ts';
import { type ScriptedAnswer, type UpstreamAnswer, UpstreamScript } from '../dry-run/fake-exchange.ts';

/** What upstreams do with the requests that they receive, and what a client has used up before. */
export interface UpstreamAssumption extends UpstreamAnswer {
	/** Address of the only upstream that does this, while all others answer 200; undefined if all do. */
	readonly of?: string;
	/** True if only the first request is treated in this way, while later ones are answered with 200. */
	readonly once?: boolean;
	/** Name of the zone of rate limits in which the client has no requests left. */
	readonly exceeds?: string;
	/** Name of the zone of concurrency limits without a free place. */
	readonly busy?: string;
}

/** Returns the script that makes fake upstreams behave as the assumption says. */
export function scriptOf(assumption: UpstreamAssumption): UpstreamScript {
	const { of, once, headers, exceeds, busy } = assumption;
	const usual: UpstreamAnswer = { status: 200, body: '', ...(headers && { headers }) };
	const answers: ScriptedAnswer[] = [{ of, answer: assumption }];
	if (once) answers.push({ of, answer: usual });
	if (of !== undefined) answers.push({ of: undefined, answer: usual });
	return new UpstreamScript(answers, exceeds, busy === undefined ? [] : [busy]);
}

/**
 * Returns what to assume, in the order in which it is tried: answers that response matchers and error routes tell apart, and
 * failures that the settings of a pool allow. The first is a plain answer. `headers` are fields of the others.
 */
export function upstreamAssumptions(
	documents: readonly Document[],
	headers: readonly (readonly [name: string, value: string])[],
): readonly UpstreamAssumption[] {
	const text = JSON.stringify(documents);
	const has = (...settings: readonly string[]): boolean => settings.some(name => text.includes(`"${name}":`));
	const failures: UpstreamAssumption[] = [
		{ status: 502, body: '', unreachable: true },
		{ status: 504, body: '', unreachable: true, timesOut: true },
	];
	// Without a time limit, the client would wait forever.
	if (has('response_header_timeout', 'read_timeout')) failures.push({ status: 504, body: '', timesOut: true });
	if (has('retries', 'retry_duration')) {
		// Which requests may be sent again depends on how far the first attempt came.
		failures.push({ status: 502, body: '', disconnects: true });
		failures.push(...failures.map((failure): UpstreamAssumption => ({ ...failure, headers, once: true })));
	}
	if (has('health', 'fail_duration', 'circuit')) failures.push({ status: 503, body: '', unavailable: true });
	return [
		{ status: 200, body: '' },
		{ status: 200, body: 'from the upstream', headers },
		...distinguishedStatuses(text).map(status => ({ status, body: '', headers })),
		...failures,
	];
}

/** Returns the statuses that response matchers, error routes and expressions of documents tell apart, and two others. */
function distinguishedStatuses(documents: string): readonly number[] {
	const statuses = new Set([404, 500]);
	for (const [, list] of documents.matchAll(/"status":\[([^\]]*)\]/g)) {
		for (const [, text] of list!.matchAll(/"([1-5](?:\d\d|xx)?)"/g)) {
			statuses.add(text!.length === 3 && !text!.endsWith('xx') ? Number(text) : Number(text![0]) * 100 + 3);
		}
	}
	for (const [expression] of documents.matchAll(/"expression":"(?:[^"\\]|\\.)*"/g)) {
		if (!expression.includes('status')) continue;
		for (const [text] of expression.matchAll(/\b[1-5]\d\d\b/g)) {
			for (const around of [-1, 0, 1]) statuses.add(Number(text) + around);
		}
	}
	return [...statuses].filter(status => status >= 200 && status < 600);
}

/** Returns the assumption as the rest of a sentence: `if the upstream answers 404`. */
export function assumptionText(assumption: UpstreamAssumption): string {
	const { status, unreachable, timesOut, disconnects, unavailable, of, once, exceeds, busy, headers = [] } = assumption;
	if (exceeds !== undefined) return `if the rate limit \`${exceeds}\` is exceeded`;
	if (busy !== undefined) return `if no place of the zone \`${busy}\` is free`;
	const when = once ? ' at first' : '';
	const one = of ?? 'the upstream';
	if (unavailable) return of === undefined ? 'if no upstream is available' : `if ${of} is not available`;
	if (unreachable && timesOut) return `if connecting to ${one} takes too long${when}`;
	if (unreachable && of === undefined && !once) return 'if no upstream can be reached';
	if (unreachable) return `if ${one} cannot be reached${when}`;
	if (timesOut) return `if ${one} does not answer in time${when}`;
	if (disconnects) return `if ${one} closes the connection without an answer${when}`;
	const fields = headers.map(([name, value]) => `\`${name}: ${value}\``).join(', ');
	return `if ${one} answers ${status}${fields === '' ? '' : ` with ${fields}`}${when}`;
}
