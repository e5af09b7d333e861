/** The words of a dialect that editors color without a language server, derived from the registries of modules. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { registryOf } from '../../compiler/lower/registry.ts';
import { EXPECTATIONS } from '../../compiler/testing/expectations.ts';

/** The words of one dialect, each list sorted. */
export interface EditorWords {
	/** Directives, without keywords of the language. */
	readonly directives: readonly string[];
	/** Directives and subdirectives whose blocks contain directives. */
	readonly blocks: readonly string[];
	readonly matchers: readonly string[];
	readonly options: readonly string[];
	/** Words of the language itself, such as `import`. */
	readonly keywords: readonly string[];
	/** Operators for matchers, such as `not`. */
	readonly operators: readonly string[];
	/** Words that may follow `expect` in a test. */
	readonly expectations: readonly string[];
}

/** Subdirectives whose blocks contain directives. */
const PIPELINE_SUBDIRECTIVES = ['handle_response'];
const KEYWORDS_BY_DIALECT: { readonly [dialect in Dialect]: readonly string[] } = {
	configfile: ['else', 'import', 'let', 'test', 'upstream', 'use', 'when'],
	compatfile: ['import'],
};

export function editorWords(dialect: Dialect): EditorWords {
	const { directives, matchers, options } = registryOf(dialect);
	const keywords = KEYWORDS_BY_DIALECT[dialect];
	const directiveNames = [...directives.keys()].filter(name => !keywords.includes(name));
	const isBlock = (name: string): boolean => directives.get(name)!.isBlock === true;
	return {
		directives: directiveNames.toSorted(),
		blocks: [...directiveNames.filter(isBlock), ...PIPELINE_SUBDIRECTIVES].toSorted(),
		matchers: [...matchers.keys()].filter(name => name !== 'not').toSorted(),
		options: [...options.keys()].toSorted(),
		keywords,
		operators: dialect === 'configfile' ? ['and', 'not', 'or'] : ['not'],
		expectations: dialect === 'configfile' ? Object.keys(EXPECTATIONS).toSorted() : [],
	};
}
