/** The exported schema: every field has a description, every `$ref` resolves, and other validators accept it. */
import { Ajv } from 'ajv';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { exportedSchema } from '../../../compiler/schema/exported-schema.ts';

type Fields = { readonly [word: string]: unknown };

/** Yields every property of a schema, with its path in the schema. */
function* fieldsOf(schema: Fields, place: string): Generator<{ place: string; field: Fields }> {
	for (const [name, field] of Object.entries((schema.properties ?? {}) as { [name: string]: Fields })) {
		yield { place: `${place}/${name}`, field };
		yield* fieldsOf(field, `${place}/${name}`);
	}
	for (const word of ['items', 'additionalProperties'] as const) {
		if (typeof schema[word] === 'object') yield* fieldsOf(schema[word] as Fields, `${place}/${word}`);
	}
	for (const word of ['oneOf', 'anyOf', 'allOf'] as const) {
		for (const [index, one] of ((schema[word] ?? []) as Fields[]).entries()) {
			yield* fieldsOf(one, `${place}/${word}${index}`);
		}
	}
	for (const [name, one] of Object.entries((schema.$defs ?? {}) as { [name: string]: Fields })) {
		yield* fieldsOf(one, `/$defs/${name}`);
	}
}

const schema = exportedSchema() as Fields;
const exported = suite('exported schema');

exported('every field has a description, or refers to a schema that has one', () => {
	const definitions = schema.$defs as { [name: string]: Fields };
	const missing = [...fieldsOf(schema, '')]
		// A field with a constant value, such as a type tag, needs no description.
		.filter(({ field }) => field.const === undefined && field.description === undefined)
		.filter(({ field }) => {
			const name = typeof field.$ref === 'string' ? field.$ref.slice('#/$defs/'.length) : undefined;
			return (
				name === undefined || (definitions[name]?.description === undefined && definitions[name]?.oneOf === undefined)
			);
		})
		.map(({ place }) => place);
	assert.equal(missing, [], 'add a description to each in the schema of its module');
});

exported('descriptions are sentences', () => {
	for (const { place, field } of fieldsOf(schema, '')) {
		if (typeof field.description !== 'string') continue;
		assert.match(field.description, /^[A-Z`[0-9][\s\S]*[.)]$|^[a-z]+:[a-z]+(?: or|,) /, place);
	}
});

exported('a validator without our extensions accepts it', () => {
	const ajv = new Ajv({ strict: false });
	const validate = ajv.compile(schema);
	assert.ok(validate({ sites: [{ addresses: [':80'], pipeline: [{ handler: 'respond', status: 204 }] }] }));
	assert.not(validate({ sites: [{ addresses: [':80'], pipeline: [{ handler: 'respnd' }] }] }));
});

exported("no top-level key and no handler has a name that Caddy's schema uses", () => {
	const definitions = Object.keys(schema.$defs as Fields);
	const handlers = definitions.filter(name => name.startsWith('handler.')).map(name => name.slice('handler.'.length));
	assert.ok(handlers.length > 20);
	const theirs =
		'acme_server authentication copy_response copy_response_headers encode error file_server headers intercept invoke log_append map metrics push request_body reverse_proxy rewrite static_response subroute templates tracing vars';
	assert.equal(
		handlers.filter(name => theirs.split(' ').includes(name)),
		[],
	);
	assert.equal(
		Object.keys(schema.properties as Fields).filter(key => ['admin', 'logging', 'storage', 'apps'].includes(key)),
		[],
	);
});

exported.run();
