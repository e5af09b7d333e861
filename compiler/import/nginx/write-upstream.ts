/** Writes an `upstream` block of nginx as an upstream pool. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';

/** Returns the names of all `upstream` blocks. */
export function poolNames(http: readonly NginxDirective[]): Set<string> {
	return new Set(http.filter(({ name }) => name === 'upstream').map(({ args }) => args[0] ?? ''));
}

const POLICIES: { readonly [name: string]: string } = { least_conn: 'least_conn', ip_hash: 'client_ip_hash' };

/** Returns an address of nginx as one of ours. A port that is missing is 80. */
export function upstreamAddress(text: string): string {
	if (text.startsWith('unix:')) return `unix/${text.slice(5).replace(/:$/, '')}`;
	return /:\d+$/.test(text) ? text : `${text}:80`;
}

/** Writes the block. Servers with other options than `weight`, `max_fails` and `fail_timeout` are written without them. */
export function writeUpstream(pool: NginxDirective, out: ConfigfileWriter): void {
	out.count(pool);
	const addresses: string[] = [];
	const weights: number[] = [];
	let policy = 'round_robin';
	let fails: string | undefined;
	let timeout: string | undefined;
	out.block(`upstream ${word(pool.args[0] ?? '')}`, () => {
		for (const one of pool.block ?? []) {
			const known = POLICIES[one.name];
			if (known !== undefined) {
				policy = known;
				out.count(one);
			} else if (one.name === 'keepalive') out.keep(one, 'connections are always kept open');
			else if (one.name !== 'server') out.keep(one, 'the import does not translate this directive');
			else {
				const odd = one.args.slice(1).filter(option => !/^(weight|max_fails|fail_timeout)=\d+s?$/.test(option));
				if (odd.length > 0) out.keep(one, `no counterpart for ${odd.join(', ')}, so this upstream is not used`);
				if (odd.length > 0) continue;
				out.count(one);
				const option = (name: string): string | undefined =>
					one.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
				addresses.push(upstreamAddress(one.args[0] ?? ''));
				weights.push(Number(option('weight') ?? 1));
				fails ??= option('max_fails');
				timeout ??= option('fail_timeout');
			}
		}
		out.line(`to ${addresses.map(word).join(' ')}`);
		const weighted = weights.some(weight => weight !== 1);
		if (weighted && policy === 'round_robin') out.line(`lb_policy weighted_round_robin ${weights.join(' ')}`);
		else out.line(`lb_policy ${policy}`);
		if (weighted && policy !== 'round_robin')
			out.line(`# nginx: the weights ${weights.join(' ')} -- ${policy} has none`);
		if (fails !== '0') {
			out.line(`fail_duration ${timeout === undefined ? '10s' : timeout.replace(/^(\d+)$/, '$1s')}`);
			out.line(`max_fails ${fails ?? 1}`);
		}
		if (addresses.length > 1) out.line(`lb_retries ${addresses.length - 1}`);
	});
}
