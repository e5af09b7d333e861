/** The directives, matchers and options of one dialect, by their names. */
import type { Dialect } from '../dialects/dialect.ts';
import type { Directive } from '../modules/contract/directive.ts';
import type { MatcherModule } from '../modules/contract/matcher.ts';
import type { GlobalOption } from '../modules/contract/option.ts';
import { directives } from '../modules/registry/directives.ts';
import { matchers } from '../modules/registry/matchers.ts';
import { options } from '../modules/registry/options.ts';

/** The modules of one dialect. */
export interface Registry {
	readonly directives: ReadonlyMap<string, Directive>;
	/** Current names of directives, by obsolete name. */
	readonly oldSpellings: ReadonlyMap<string, string>;
	readonly matchers: ReadonlyMap<string, MatcherModule>;
	readonly options: ReadonlyMap<string, GlobalOption>;
	/** Directives and options that exist only in a Configfile; empty for that dialect itself. */
	readonly configfileOnly: ReadonlySet<string>;
}

/** Returns the registry of a dialect: the modules that have names in it. */
export function registryOf(dialect: Dialect): Registry {
	const oldSpellings = new Map<string, string>();
	const directivesByName = new Map<string, Directive>();
	for (const directive of directives) {
		for (const name of directive.names[dialect]) directivesByName.set(name, directive);
		const otherDialect = dialect === 'configfile' ? 'compatfile' : 'configfile';
		const currentName = directive.names[dialect][0];
		if (currentName === undefined) continue;
		for (const name of directive.names[otherDialect])
			if (!directive.names[dialect].includes(name)) oldSpellings.set(name, currentName);
	}
	const optionsByName = new Map<string, GlobalOption>();
	for (const option of options) for (const name of option.names[dialect]) optionsByName.set(name, option);
	return {
		directives: directivesByName,
		oldSpellings,
		matchers: new Map(matchers.map(matcher => [matcher.id, matcher])),
		options: optionsByName,
		configfileOnly: new Set(
			[...directives, ...options].flatMap(({ names }) =>
				dialect === 'compatfile' && names.compatfile.length === 0 ? names.configfile : [],
			),
		),
	};
}
