/** `remote_ip` and `client_ip`: match addresses by ranges. */

import type { Matcher } from '../../document/document.ts';
import { parseIp } from '../../exchange/ip-address.ts';
import type { Line } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { compileRanges, lowerRanges } from '../words/range-words.ts';
import { matcherArguments, mergeDistinct, stringListSchema } from './words.ts';

interface IpMatcher extends Matcher {
	readonly ranges: readonly string[];
}

const RANGES_SCHEMA = stringListSchema('ranges', 'Addresses, CIDR ranges or `private_ranges`, any of which may match.');

const RANGE_DOCUMENTATION = [
	'A range is an address, a CIDR range such as `10.0.0.0/8` or `2001:db8::/32`, or `private_ranges` for the private',
	'networks. IPv4 addresses mapped into IPv6 are compared as IPv4. `fe80::1%eth0` matches in that zone only.',
];

export const remoteIp = requestMatcher<IpMatcher>({
	id: 'remote_ip',
	usage: 'remote_ip <range>…',
	summary: 'Matches the address of the connection.',
	documentation: [
		"The address of the peer; behind a proxy, that is the proxy's: use `client_ip`.",
		...RANGE_DOCUMENTATION,
		'',
		'```',
		'@inside remote_ip private_ranges',
		'```',
	].join('\n'),
	probeChanges: ({ ranges }) => sampleAddresses(ranges).map(from => ({ from })),
	valuesOptional: true,
	lower: (line, cx) => lowerIpMatcher('remote_ip', line, cx),
	merge: (a, b) => ({ type: 'remote_ip', ranges: mergeDistinct(a.ranges, b.ranges) }),
	schema: RANGES_SCHEMA,
	compile: (matcher, cx) => {
		const ranges = compileRanges(matcher.ranges, cx);
		return x => ranges.contains(x.connection.remoteAddress);
	},
});

export const clientIp = requestMatcher<IpMatcher>({
	id: 'client_ip',
	usage: 'client_ip <range>…',
	summary: "Matches the client's address, determined through the proxies in `trusted_proxies`.",
	documentation: [
		'The address reported by a trusted proxy, or otherwise that of the connection.',
		...RANGE_DOCUMENTATION,
		'',
		'```',
		'@office client_ip 203.0.113.0/24',
		'```',
	].join('\n'),
	probeChanges: ({ ranges }) => sampleAddresses(ranges).map(from => ({ from })),
	valuesOptional: true,
	lower: (line, cx) => lowerIpMatcher('client_ip', line, cx),
	merge: (a, b) => ({ type: 'client_ip', ranges: mergeDistinct(a.ranges, b.ranges) }),
	schema: RANGES_SCHEMA,
	compile: (matcher, cx) => {
		const ranges = compileRanges(matcher.ranges, cx);
		const { clientIp: readClientIp } = cx;
		return x => ranges.contains(readClientIp(x));
	},
});

/** Returns an address in each range, and an address from a documentation network (RFC 5737), which is probably in no range. */
function sampleAddresses(ranges: readonly string[]): readonly string[] {
	const addresses = ranges.map(range => (range === 'private_ranges' ? '10.0.0.1' : range.replace(/\/.*$/, '')));
	return [...addresses.filter(address => parseIp(address) !== undefined), '198.51.100.77'];
}

function lowerIpMatcher(type: 'remote_ip' | 'client_ip', line: Line, cx: LowerContext): IpMatcher | undefined {
	const args = matcherArguments(line, cx, `${type} <range>…`);
	if (!args) return undefined;
	for (const { span } of args.filter(({ text }) => text === 'forwarded')) {
		const message = "the 'forwarded' option is no longer supported; use the 'client_ip' matcher instead";
		cx.problem('error', 'address/forwarded', span, message);
	}
	const ranges = lowerRanges(
		args.filter(({ text }) => text !== 'forwarded'),
		cx,
	);
	return { type, ranges };
}
