/** Writes the `upstream` blocks of nginx as upstream pools. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

const POLICIES_BY_DIRECTIVE: { readonly [name: string]: string } = {
	least_conn: 'least_conn',
	ip_hash: 'client_ip_hash',
	random: 'random',
};

/** Converts the address of a server in nginx to the form of a Configfile. A port is added if there is none. */
export function upstreamAddress(text: string, defaultPort = 80): string {
	if (text.startsWith('unix:')) return `unix/${text.slice(5).replace(/:$/, '')}`;
	return /:\d+$/.test(text) ? text : `${text}:${defaultPort}`;
}

/** The `upstream` pools of a configuration. A pool is written once for each combination of settings with which locations use it. */
export class Pools {
	readonly #out: ConfigfileWriter;
	readonly #upstreamsByName = new Map<string, NginxDirective>();
	readonly #variantsByKey = new Map<
		string,
		{ readonly name: string; readonly poolName: string; readonly settings: readonly string[]; readonly isTls: boolean }
	>();
	readonly #variables: Variables;

	constructor(httpDirectives: readonly NginxDirective[], out: ConfigfileWriter, variables: Variables) {
		this.#out = out;
		this.#variables = variables;
		for (const directive of httpDirectives)
			if (directive.name === 'upstream' && directive.block)
				this.#upstreamsByName.set(directive.args[0] ?? '', directive);
	}

	/** Reports whether there is an `upstream` block of this name. */
	has(name: string): boolean {
		return this.#upstreamsByName.has(name);
	}

	/**
	 * Returns the name of the variant of a pool that has the given settings, and creates the variant on first use. `settings` are
	 * lines of a Configfile, such as a `transport` block.
	 */
	variantName(name: string, settings: readonly string[], isTls: boolean): string {
		const key = [name, isTls, ...settings].join('\n');
		const existingVariant = this.#variantsByKey.get(key);
		if (existingVariant) return existingVariant.name;
		const count = [...this.#variantsByKey.values()].filter(({ poolName: of }) => of === name).length;
		const variant = { name: count === 0 ? name : `${name}_${count + 1}`, poolName: name, settings, isTls };
		this.#variantsByKey.set(key, variant);
		return variant.name;
	}

	/** Writes all variants of pools that locations use. */
	write(): void {
		for (const { name, poolName, settings, isTls } of this.#variantsByKey.values()) {
			this.#out.writeBlock(`upstream ${word(name)}`, () =>
				this.#writePool(this.#upstreamsByName.get(poolName)!, settings, isTls),
			);
			this.#out.writeLine('');
		}
	}

	#writePool(poolDirective: NginxDirective, settings: readonly string[], isTls: boolean): void {
		const out = this.#out;
		out.countTranslated(poolDirective);
		const serverWords: string[] = [];
		const backupWords: string[] = [];
		let policy: string | undefined;
		let maxFails: string | undefined;
		let failTimeout: string | undefined;
		let hasWeight = false;
		for (const directive of poolDirective.block!) {
			const namedPolicy = Object.hasOwn(POLICIES_BY_DIRECTIVE, directive.name)
				? POLICIES_BY_DIRECTIVE[directive.name]
				: undefined;
			if (namedPolicy !== undefined) {
				policy = namedPolicy;
				out.countTranslated(directive);
			} else if (directive.name === 'hash') {
				try {
					policy = hashPolicy(directive.args[0] ?? '', this.#variables);
					out.countTranslated(directive);
				} catch (error) {
					if (!(error instanceof Untranslatable)) throw error;
					out.keepAsComment(directive, error.message);
				}
			} else if (/^(?:keepalive|zone)/.test(directive.name))
				out.keepAsComment(directive, 'connections are kept open, and state is shared, without such a line');
			else if (directive.name !== 'server')
				out.keepAsComment(directive, 'the import does not translate this directive');
			else {
				const optionValue = (name: string): string | undefined =>
					directive.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
				if (directive.args.includes('down')) {
					out.keepAsComment(directive, 'a server that is down gets no requests');
					continue;
				}
				const unsupportedParameters = directive.args
					.slice(1)
					.filter(text => !/^(?:(?:weight|max_fails|fail_timeout)=\d+(?:ms|[smhd])?|backup|resolve)$/.test(text));
				if (unsupportedParameters.length > 0)
					out.keepAsComment(directive, `no counterpart for ${unsupportedParameters.join(', ')}`);
				else out.countTranslated(directive);
				const weight = optionValue('weight');
				const address = upstreamAddress(directive.args[0] ?? '');
				const addressWord = word(isTls ? `https://${address}` : address);
				if (directive.args.includes('backup')) backupWords.push(addressWord);
				else {
					if (weight !== undefined && weight !== '1') hasWeight = true;
					serverWords.push(weight === undefined || weight === '1' ? addressWord : `${addressWord} weight=${weight}`);
				}
				maxFails ??= optionValue('max_fails');
				failTimeout ??= optionValue('fail_timeout');
			}
		}
		// The weight of a single server has no effect.
		if (serverWords.length === 1) {
			serverWords[0] = serverWords[0]!.replace(/ weight=\d+$/, '');
			hasWeight = false;
		}
		if (hasWeight && policy !== undefined) {
			out.writeLine(`# nginx: ${policy} takes no weights here`);
			out.writeLine(`to ${serverWords.map(address => address.replace(/ weight=\d+$/, '')).join(' ')}`);
		} else if (serverWords.length > 0) out.writeLine(`to ${serverWords.join(' ')}`);
		if (backupWords.length > 0) out.writeLine(`${serverWords.length > 0 ? 'backup' : 'to'} ${backupWords.join(' ')}`);
		// With weights, a pool uses weighted round robin by default, as in nginx. Without weights, nginx's default needs a line.
		if (policy !== undefined || !hasWeight) out.writeLine(`lb_policy ${policy ?? 'round_robin'}`);
		const serverCount = serverWords.length + backupWords.length;
		// nginx ignores the failures of a pool's only server.
		if (maxFails !== '0' && serverCount > 1) {
			out.writeLine(`fail_duration ${failTimeout === undefined ? '10s' : durationOf(failTimeout)}`);
			out.writeLine(`max_fails ${maxFails ?? 1}`);
		}
		if (serverCount > 1 && !settings.includes('no retries')) out.writeLine(`lb_retries ${serverCount - 1}`);
		for (const line of settings) if (line !== 'no retries') out.writeLine(line);
	}
}

function hashPolicy(key: string, variables: Variables): string {
	if (key === '$remote_addr' || key === '$binary_remote_addr') return 'client_ip_hash';
	if (key === '$request_uri' || key === '$uri' || key === '$scheme$proxy_host$request_uri') return 'uri_hash';
	const [, kind, name] = /^\$(http|arg)_(\w+)$/.exec(key) ?? [];
	if (kind === 'http') return `header ${/^\{header\.(.+)\}$/.exec(variables.placeholderOf(`http_${name}`))![1]}`;
	if (kind === 'arg') return `query ${name}`;
	throw new Untranslatable('requests are not balanced by this key');
}
