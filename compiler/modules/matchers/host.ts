/** `host`: matches the requested host. */

import type { Matcher } from '../../document/document.ts';
import { canonicalHost, hostMatches } from '../../exchange/authority.ts';
import type { Predicate } from '../../exchange/handler.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { UNMENTIONED_VALUE } from '../contract/request-change.ts';
import { matcherArguments, mergeDistinct, stringListSchema } from './words.ts';

interface HostMatcher extends Matcher {
	readonly type: 'host';
	readonly hosts: readonly string[];
}

const USAGE = 'host <name>…';

/** Minimum number of exact hosts for which a set is faster than comparing them one by one. */
const MIN_SET_SIZE = 5;

export const host = requestMatcher<HostMatcher>({
	id: 'host',
	usage: USAGE,
	summary: 'Matches the requested host, without its port.',
	documentation: [
		'Any of the names may match. Case, a trailing dot and the port are ignored; international names are compared',
		'in ASCII form. A label `*` matches exactly one label. Placeholders are resolved per request.',
		'',
		'```',
		'@www host www.example.com *.example.org',
		'```',
	].join('\n'),
	listedValues: { field: 'hosts', kind: 'host' },
	probeChanges: ({ hosts }) => hosts.map(host => ({ host: host.replace('*', UNMENTIONED_VALUE) })),
	valuesOptional: true,
	lower: (line, cx) => {
		const args = matcherArguments(line, cx, USAGE);
		if (!args) return undefined;
		const indexByName = new Map<string, number>();
		const hosts: string[] = [];
		args.forEach((word, index) => {
			const firstIndex = indexByName.get(word.text.toLowerCase());
			if (firstIndex !== undefined) {
				const message = `host at index ${firstIndex} is repeated at index ${index}: ${word.text}`;
				cx.problem('error', 'host/repeated', word.span, message, { label: 'already listed' });
			}
			if (!word.text.includes('{') && canonicalHost(word.text) === undefined) {
				cx.problem('error', 'host/invalid', word.span, `\`${word.text}\` is not a host name.`, {
					hint: 'Write a name such as `example.com`, `*.example.com` or an IP address, without scheme, port or path.',
				});
			}
			indexByName.set(word.text.toLowerCase(), index);
			hosts.push(cx.template(word));
		});
		return { type: 'host', hosts };
	},
	merge: (a, b) => ({ type: 'host', hosts: mergeDistinct(a.hosts, b.hosts) }),
	schema: stringListSchema('hosts', 'Host names, any of which may match.'),
	compile: compileHost,
});

function compileHost(matcher: HostMatcher, cx: CompileContext): Predicate {
	const exactNames = new Set<string>();
	const wildcardHosts: string[] = [];
	const dynamicTests: Predicate[] = [];
	for (const hostText of matcher.hosts) {
		const template = cx.template(hostText, 'empty');
		if (template.constant === undefined) {
			dynamicTests.push(x => {
				const name = canonicalHost(template.render(x));
				return name !== undefined && name !== '' && name === x.request.host;
			});
			continue;
		}
		const name = canonicalHost(template.constant);
		if (name === undefined) return cx.refuse(`\`${hostText}\` is not a host name.`, 'host/invalid');
		if (name.includes('*')) wildcardHosts.push(name);
		else exactNames.add(name);
	}
	const matchesWildcardOrTemplate: Predicate | undefined =
		wildcardHosts.length + dynamicTests.length === 0
			? undefined
			: x =>
					wildcardHosts.some(pattern => hostMatches(x.request.host, pattern)) ||
					dynamicTests.some(predicate => predicate(x));
	if (exactNames.size >= MIN_SET_SIZE)
		return x => exactNames.has(x.request.host) || (matchesWildcardOrTemplate?.(x) ?? false);
	const names = [...exactNames];
	return x => names.includes(x.request.host) || (matchesWildcardOrTemplate?.(x) ?? false);
}
