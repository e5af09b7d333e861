/** Lowers the sub-directives about upstream health: active checks, passive checks, circuit breakers, adaptive limits. */
import { isToken } from '../../../exchange/field-syntax.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { parsePercentage, parseSingleDuration, parseSingleInteger, parseSingleWord } from '../../words/single-value.ts';
import { lowerShed, type ShedSettings } from './shed-settings.ts';
import { parseUpstream } from './upstream-address.ts';
import type { CircuitSettings, HealthCheckSettings } from './upstream-pool.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The health settings of a pool that is being lowered. Its lines set the fields. */
export interface HealthDraft {
	health?: HealthCheckSettings;
	fail_duration?: number;
	max_fails?: number;
	unhealthy_status?: string[];
	unhealthy_latency?: number;
	unhealthy_request_count?: number;
	circuit?: CircuitSettings;
	shed?: ShedSettings;
	slow_start?: number;
}

const STATUS_PATTERN = /^[1-5](?:\d\d|xx)$/;

/**
 * Returns the handlers of the sub-directives about health, which fill the draft. Call {@link dropDisabledHealthChecks} after they
 * have run.
 */
export function healthSubdirectives(draft: HealthDraft, cx: LowerContext): { [name: string]: SubdirectiveHandler } {
	return { ...activeCheckSubdirectives(draft, cx), ...passiveCheckSubdirectives(draft, cx) };
}

/** Drops the settings of active checks if neither `uri` nor `port` is set, because only these enable the checks. */
export function dropDisabledHealthChecks(draft: HealthDraft): void {
	const { health } = draft;
	if (health && health.uri === undefined && health.port === undefined) delete draft.health;
}

function activeCheckSubdirectives(draft: HealthDraft, cx: LowerContext): { [name: string]: SubdirectiveHandler } {
	const setField = <K extends keyof HealthCheckSettings>(key: K, value: HealthCheckSettings[K] | undefined) => {
		if (value !== undefined) draft.health = { ...draft.health, [key]: value };
	};
	const lowerUri: SubdirectiveHandler = (args, line) => {
		const word = parseSingleWord(args, line, cx, 'uri');
		if (!word) return;
		if (/^[\x21-\x7e]+$/.test(word.text)) setField('uri', word.text);
		else
			cx.problem('error', 'health/invalid-uri', word.span, `\`${word.text}\` is not a path.`, {
				hint: 'Write a path such as /health, with other characters percent-encoded.',
			});
	};
	return {
		health_uri: lowerUri,
		health_path: (args, line) => {
			if (cx.dialect === 'configfile') {
				cx.problem(
					'error',
					'directive/deprecated',
					line.words[0]!.span,
					'`health_path` is the old name of `health_uri`.',
					{
						hint: 'Write `health_uri`.',
					},
				);
			}
			lowerUri(args, line);
		},
		health_upstream: (args, line) => {
			const word = parseSingleWord(args, line, cx, 'host:port');
			if (!word) return;
			const parsedUpstream = parseUpstream(word.text);
			const isSingleAddress =
				parsedUpstream.kind === 'static' && parsedUpstream.addresses.length === 1 && /:\d+$/.test(word.text);
			if (isSingleAddress && !word.text.includes('/')) setField('upstream', parsedUpstream.addresses[0]!.address);
			else
				cx.problem('error', 'health/invalid-upstream', word.span, `health_upstream is malformed: '${word.text}'`, {
					hint: 'Write `host:port`.',
				});
		},
		health_port: (args, line) => {
			if (draft.health?.upstream !== undefined) {
				const message = "the 'health_port' subdirective is ignored if 'health_upstream' is used!";
				cx.problem('error', 'health/port-and-upstream', line.words[0]!.span, message);
				return;
			}
			setField('port', parseSingleInteger(args, line, cx, 1, 65_535));
		},
		health_interval: (args, line) => setField('interval', atLeast(1, parseSingleDuration(args, line, cx))),
		health_timeout: (args, line) => setField('timeout', atLeast(1, parseSingleDuration(args, line, cx))),
		health_passes: (args, line) => setField('passes', parseSingleInteger(args, line, cx, 1, 1000)),
		health_fails: (args, line) => setField('fails', parseSingleInteger(args, line, cx, 1, 1000)),
		health_status: (args, line) => {
			const word = parseSingleWord(args, line, cx, 'status');
			if (word && isStatus(word, cx)) setField('status', word.text);
		},
		health_body: (args, line) => {
			const word = parseSingleWord(args, line, cx, 'regexp');
			setField('body', word && cx.regexp(word));
		},
		health_method: (args, line) => {
			const word = parseSingleWord(args, line, cx, 'method');
			if (!word) return;
			if (isToken(word.text) && word.text.toUpperCase() !== 'CONNECT') setField('method', word.text.toUpperCase());
			else
				cx.problem('error', 'health/invalid-method', word.span, `\`${word.text}\` is not a method for health checks.`);
		},
		health_request_body: (args, line) => setField('request_body', parseSingleWord(args, line, cx, 'body')?.text),
		health_follow_redirects: (args, line) => {
			if (cx.noBlock(line) && cx.count(line, args, 0, 0, 'health_follow_redirects')) setField('follow_redirects', true);
		},
		health_headers: (args, line) => {
			if (!cx.count(line, args, 0, 0, 'health_headers { <field> <value>… }')) return;
			const headers = [...(draft.health?.headers ?? [])];
			for (const { words } of line.block?.lines ?? []) {
				const [fieldWord, ...values] = words as [Word, ...Word[]];
				const name = fieldWord.text.replace(/:$/, '');
				if (!isToken(name)) {
					cx.problem('error', 'header/invalid-name', fieldWord.span, `\`${name}\` is not a field name.`);
					continue;
				}
				// Placeholders in these fields are not validated: unlike placeholders elsewhere, they may also refer to the upstream
				// that is checked.
				const texts = values.length === 0 ? [''] : values.map(({ text }) => text);
				headers.push(...texts.map(value => ({ name, value })));
			}
			setField('headers', headers);
		},
	};
}

function passiveCheckSubdirectives(draft: HealthDraft, cx: LowerContext): { [name: string]: SubdirectiveHandler } {
	const setField = <K extends keyof HealthDraft>(key: K, value: HealthDraft[K] | undefined) => {
		if (value !== undefined) draft[key] = value;
	};
	return {
		fail_duration: (args, line) => setField('fail_duration', parseSingleDuration(args, line, cx)),
		max_fails: (args, line) => setField('max_fails', parseSingleInteger(args, line, cx, 1, 1000)),
		unhealthy_status: (args, line) => {
			if (!cx.noBlock(line) || !cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'unhealthy_status <status>…')) return;
			const statuses = args.filter(word => isStatus(word, cx)).map(({ text }) => text);
			setField('unhealthy_status', [...(draft.unhealthy_status ?? []), ...statuses]);
		},
		unhealthy_latency: (args, line) => setField('unhealthy_latency', parseSingleDuration(args, line, cx)),
		unhealthy_request_count: (args, line) =>
			setField('unhealthy_request_count', parseSingleInteger(args, line, cx, 1, 1_000_000)),
		shed: (args, line) => setField('shed', lowerShed(args, line, cx)),
		...(cx.dialect === 'compatfile'
			? {}
			: {
					slow_start: (args: readonly Word[], line: Line) =>
						setField('slow_start', parseSingleDuration(args, line, cx)),
					circuit_breaker: (args: readonly Word[], line: Line) => lowerCircuitBreaker(args, line, draft, cx),
				}),
	};
}

function lowerCircuitBreaker(args: readonly Word[], line: Line, draft: HealthDraft, cx: LowerContext): void {
	if (!cx.count(line, args, 0, 0, 'circuit_breaker [{ … }]')) return;
	const circuit: Writable<CircuitSettings> = {};
	const setField = <K extends keyof CircuitSettings>(key: K, value: CircuitSettings[K] | undefined) => {
		if (value !== undefined) circuit[key] = value;
	};
	const ratioHandler = (key: 'error_ratio' | 'slow_ratio'): SubdirectiveHandler => {
		return (words, innerLine) => {
			const word = parseSingleWord(words, innerLine, cx, 'percent');
			const ratio = word && parsePercentage(word, cx);
			if (ratio === undefined || !word) return;
			if (ratio > 0 && ratio <= 1) setField(key, ratio);
			else
				cx.problem(
					'error',
					'value/out-of-range',
					word.span,
					`\`${word.text}\` is not a percentage above 0% and up to 100%.`,
				);
		};
	};
	cx.subdirectives(
		line.block,
		{
			error_ratio: ratioHandler('error_ratio'),
			slow_ratio: ratioHandler('slow_ratio'),
			slow_after: (words, innerLine) => setField('slow_after', parseSingleDuration(words, innerLine, cx)),
			min_requests: (words, innerLine) =>
				setField('min_requests', parseSingleInteger(words, innerLine, cx, 1, 1_000_000)),
			window: (words, innerLine) => setField('window', atLeast(10, parseSingleDuration(words, innerLine, cx))),
			open_for: (words, innerLine) => setField('open_for', atLeast(1, parseSingleDuration(words, innerLine, cx))),
			probes: (words, innerLine) => setField('probes', parseSingleInteger(words, innerLine, cx, 1, 1000)),
		},
		'circuit_breaker',
	);
	draft.circuit = circuit;
}

function isStatus(word: Word, cx: LowerContext): boolean {
	if (STATUS_PATTERN.test(word.text)) return true;
	cx.problem(
		'error',
		'status/invalid',
		word.span,
		`bad status value '${word.text}': expected a status such as 204 or 2xx`,
	);
	return false;
}

function atLeast(minimum: number, value: number | undefined): number | undefined {
	return value === undefined ? undefined : Math.max(minimum, value);
}
