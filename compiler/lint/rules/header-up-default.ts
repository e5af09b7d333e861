/** The lint rule `proxy/header-up-default`, which reports a `header_up` that replaces a default field with a worse value. */
import type { Document } from '../../document/document.ts';
import { wholeLinesSpan } from '../../source/source.ts';
import { type FieldEdit, fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { usesTlsToUpstreams } from '../inspection/upstream-transport.ts';
import type { WalkedStep } from '../inspection/walk-document.ts';

/** The values that are worse than, or equal to, what `reverse_proxy` sends by default, by the lower-case name of the field. */
const DEFAULT_FIELD_VALUES: { readonly [name: string]: readonly string[] } = {
	host: ['{http.request.host}', '{http.request.hostport}', '{http.request.header.host}'],
	'x-forwarded-host': ['{http.request.host}', '{http.request.hostport}', '{http.request.header.host}'],
	'x-forwarded-proto': ['{http.request.scheme}'],
	'x-forwarded-for': ['{http.request.remote}', '{http.request.remote.host}', '{http.vars.client_ip}'],
};

/**
 * Matches the values in {@link DEFAULT_FIELD_VALUES} that equal what an upstream without TLS gets by default if no peer is
 * trusted.
 */
const SAME_VALUE = /^\{http\.request\.(?:hostport|scheme|remote\.host)\}$/i;

export const headerUpDefault: LintRule = {
	name: 'proxy/header-up-default',
	severity: 'warning',
	summary: 'A `header_up` replaces a field that is sent by default with a worse value.',
	documentation: [
		'`reverse_proxy` passes `Host` on unchanged and sets `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`',
		'itself. Set by hand, `Host {host}` loses the port, and `X-Forwarded-For {remote_host}` discards the chain of',
		'trusted proxies. Remove the line. Over TLS, the default `Host` is the address of the upstream, and nothing is reported.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const edits = [...fieldEditsOf(cx.walkedDocument)].filter(
			({ editedMessage }) => editedMessage === 'upstream_request',
		);
		const editCounts = new Map<string, number>();
		for (const edit of edits) editCounts.set(fieldKey(edit), (editCounts.get(fieldKey(edit)) ?? 0) + 1);
		for (const edit of edits) {
			const { name, value, pointer, place, isRemoval, walkedStep } = edit;
			if (isRemoval) continue;
			if (!DEFAULT_FIELD_VALUES[name.toLowerCase()]?.includes(value.toLowerCase())) continue;
			if (name.toLowerCase() === 'host' && usesTlsToUpstreams(walkedStep.step, cx.document)) continue;
			const words = `header_up ${place.list === 'add' ? '+' : ''}${name}`;
			const span = cx.span(pointer, words);
			const isOwnLine = span && /^[ \t]*header_up[ \t]/.exec(lineText(span));
			// If the step edits the field more than once, removing one line changes what the others do.
			const isOnlyEdit = editCounts.get(fieldKey(edit)) === 1;
			const isSafe = place.list === 'set' && SAME_VALUE.test(value) && !trustsPeers(walkedStep, cx.document);
			cx.reportAt(pointer, `\`reverse_proxy\` already sends \`${name}\`, with a better value.`, {
				words,
				hint: 'Remove this line.',
				...(span && isOwnLine && isOnlyEdit
					? {
							fix: {
								safety: isSafe ? 'safe' : 'unsafe',
								edits: [{ span: wholeLinesSpan(lineSpan(span)), text: '' }],
							} as const,
						}
					: {}),
			});
		}
	},
};

/** Returns a key for the field of a step that an edit changes. */
function fieldKey({ name, walkedStep }: FieldEdit): string {
	return `${walkedStep.pointer} ${name.toLowerCase()}`;
}

/** Reports whether the configuration trusts any peers, whose `X-Forwarded-*` fields the step then passes on. */
function trustsPeers({ step }: WalkedStep, { settings }: Document): boolean {
	return [settings?.trusted_proxies, settings?.trusted_proxies_unix, step.trusted_proxies].some(Boolean);
}

type Span = NonNullable<ReturnType<Parameters<NonNullable<LintRule['check']>>[0]['span']>>;

function lineSpan({ source, start }: Span): Span {
	const lineStart = source.text.lastIndexOf('\n', start - 1) + 1;
	const newline = source.text.indexOf('\n', start);
	return { source, start: lineStart, end: newline === -1 ? source.text.length : newline };
}

function lineText(span: Span): string {
	const { source, start, end } = lineSpan(span);
	return source.text.slice(start, end);
}
