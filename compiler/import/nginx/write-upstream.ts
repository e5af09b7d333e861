/** Writes the `upstream` blocks of nginx as upstream pools. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

const POLICIES: { readonly [name: string]: string } = {
	least_conn: 'least_conn',
	ip_hash: 'client_ip_hash',
	random: 'random',
};

/** Returns an address of an nginx server in the form of a Configfile. The default port is 80. */
export function upstreamAddress(text: string, defaultPort = 80): string {
	if (text.startsWith('unix:')) return `unix/${text.slice(5).replace(/:$/, '')}`;
	return /:\d+$/.test(text) ? text : `${text}:${defaultPort}`;
}

/** The pools of a configuration. A pool is written once for each set of transport settings that locations have for it. */
export class Pools {
	readonly #out: ConfigfileWriter;
	readonly #blocks = new Map<string, NginxDirective>();
	readonly #variants = new Map<
		string,
		{ readonly name: string; readonly of: string; readonly settings: readonly string[]; readonly isTls: boolean }
	>();
	readonly #variables: Variables;

	constructor(http: readonly NginxDirective[], out: ConfigfileWriter, variables: Variables) {
		this.#out = out;
		this.#variables = variables;
		for (const one of http) if (one.name === 'upstream' && one.block) this.#blocks.set(one.args[0] ?? '', one);
	}

	/** Reports whether there is a pool of this name with at least one usable server. */
	has(name: string): boolean {
		return this.#blocks.has(name);
	}

	/**
	 * Returns the name of a pool with these settings, which are lines of a Configfile, for example `transport`. A pool that is used with
	 * different settings is written once for each of them, under different names.
	 */
	use(name: string, settings: readonly string[], isTls: boolean): string {
		const key = [name, isTls, ...settings].join('\n');
		const known = this.#variants.get(key);
		if (known) return known.name;
		const count = [...this.#variants.values()].filter(({ of }) => of === name).length;
		const variant = { name: count === 0 ? name : `${name}_${count + 1}`, of: name, settings, isTls };
		this.#variants.set(key, variant);
		return variant.name;
	}

	/** Writes all pools that are used. */
	write(): void {
		for (const { name, of, settings, isTls } of this.#variants.values()) {
			this.#out.block(`upstream ${word(name)}`, () => this.#writePool(this.#blocks.get(of)!, settings, isTls));
			this.#out.line('');
		}
	}

	#writePool(pool: NginxDirective, settings: readonly string[], isTls: boolean): void {
		const out = this.#out;
		out.count(pool);
		const addresses: string[] = [];
		const backups: string[] = [];
		let policy: string | undefined;
		let fails: string | undefined;
		let timeout: string | undefined;
		let hasWeight = false;
		for (const one of pool.block!) {
			const known = Object.hasOwn(POLICIES, one.name) ? POLICIES[one.name] : undefined;
			if (known !== undefined) {
				policy = known;
				out.count(one);
			} else if (one.name === 'hash') {
				try {
					policy = hashPolicy(one.args[0] ?? '', this.#variables);
					out.count(one);
				} catch (error) {
					if (!(error instanceof Untranslatable)) throw error;
					out.keep(one, error.message);
				}
			} else if (/^(?:keepalive|zone)/.test(one.name))
				out.keep(one, 'connections are kept open, and state is shared, without such a line');
			else if (one.name !== 'server') out.keep(one, 'the import does not translate this directive');
			else {
				const option = (name: string): string | undefined =>
					one.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
				if (one.args.includes('down')) {
					out.keep(one, 'a server that is down gets no requests');
					continue;
				}
				const unsupportedParameters = one.args
					.slice(1)
					.filter(text => !/^(?:(?:weight|max_fails|fail_timeout)=\d+(?:ms|[smhd])?|backup|resolve)$/.test(text));
				if (unsupportedParameters.length > 0) out.keep(one, `no counterpart for ${unsupportedParameters.join(', ')}`);
				else out.count(one);
				const weight = option('weight');
				const address = upstreamAddress(one.args[0] ?? '');
				const at = word(isTls ? `https://${address}` : address);
				if (one.args.includes('backup')) backups.push(at);
				else {
					if (weight !== undefined && weight !== '1') hasWeight = true;
					addresses.push(weight === undefined || weight === '1' ? at : `${at} weight=${weight}`);
				}
				fails ??= option('max_fails');
				timeout ??= option('fail_timeout');
			}
		}
		// A weight of the only server changes nothing.
		if (addresses.length === 1) {
			addresses[0] = addresses[0]!.replace(/ weight=\d+$/, '');
			hasWeight = false;
		}
		// Without weights, the policy needs a line of its own. With weights, the policy is weighted round robin unless another policy
		// is written.
		if (hasWeight && policy !== undefined) {
			out.line(`# nginx: ${policy} takes no weights here`);
			out.line(`to ${addresses.map(address => address.replace(/ weight=\d+$/, '')).join(' ')}`);
		} else if (addresses.length > 0) out.line(`to ${addresses.join(' ')}`);
		if (backups.length > 0) out.line(`${addresses.length > 0 ? 'backup' : 'to'} ${backups.join(' ')}`);
		if (policy !== undefined || !hasWeight) out.line(`lb_policy ${policy ?? 'round_robin'}`);
		const servers = addresses.length + backups.length;
		// nginx ignores the failures of an only server.
		if (fails !== '0' && servers > 1) {
			out.line(`fail_duration ${timeout === undefined ? '10s' : durationOf(timeout)}`);
			out.line(`max_fails ${fails ?? 1}`);
		}
		if (servers > 1 && !settings.includes('no retries')) out.line(`lb_retries ${servers - 1}`);
		for (const line of settings) if (line !== 'no retries') out.line(line);
	}
}

function hashPolicy(key: string, variables: Variables): string {
	if (key === '$remote_addr' || key === '$binary_remote_addr') return 'client_ip_hash';
	if (key === '$request_uri' || key === '$uri' || key === '$scheme$proxy_host$request_uri') return 'uri_hash';
	const [, kind, name] = /^\$(http|arg)_(\w+)$/.exec(key) ?? [];
	if (kind === 'http') return `header ${/^\{header\.(.+)\}$/.exec(variables.placeholder(`http_${name}`))![1]}`;
	if (kind === 'arg') return `query ${name}`;
	throw new Untranslatable('requests are not balanced by this key');
}
