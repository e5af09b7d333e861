/** The origins of a lowered document's objects: maps JSON pointers to spans of text. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fields: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/** Records origins by object during lowering, and finds the nearest one for a pointer afterwards. */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Records the span of an object and of its fields. A later call adds fields and keeps the span. */
	remember(value: object, span: SourceSpan, fields?: { readonly [field: string]: SourceSpan | undefined }): void {
		const known = this.#origins.get(value);
		if (known) known.fields = { ...known.fields, ...fields };
		else this.#origins.set(value, { span, fields });
	}

	/** Transfers an object's origin to its replacement. */
	move(from: object, to: object): void {
		const origin = this.#origins.get(from);
		if (origin) this.#origins.set(to, origin);
	}

	/** Reports whether an object's origin is known. */
	has(value: object): boolean {
		return this.#origins.has(value);
	}

	/** Returns the span of the innermost recorded object or field on the path of a pointer (RFC 6901) into `document`. */
	locate(document: unknown, pointer: string): SourceSpan | undefined {
		let value = document;
		let found = this.spanOf(value);
		if (pointer === '') return found;
		for (const escaped of pointer.slice(1).split('/')) {
			if (typeof value !== 'object' || value === null) break;
			const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
			found = this.#origins.get(value)?.fields?.[key] ?? found;
			value = (value as { [key: string]: unknown })[key];
			found = this.spanOf(value) ?? found;
		}
		return found;
	}

	/** Returns the span recorded for an object itself. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Records nothing; used when nobody has asked for places yet. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}
