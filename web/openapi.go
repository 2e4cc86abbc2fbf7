package web

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"busbar.dev/ask"
	"busbar.dev/internal/lazyre"
)

// object is a JSON object of an OpenAPI description.
type object = map[string]any

// openAPI answers GET /api/openapi.json: the routes, and for questions their parameters and documents, from the
// registry and the types, as OpenAPI 3.0.3.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	paths, types := object{}, schemas{}
	at := func(path, method string, op object) {
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = op
	}
	for _, rt := range s.routes {
		if !strings.HasPrefix(rt.Path, "/api/") && rt.Path != "/metrics" {
			continue
		}
		op := object{"summary": "Needs the role " + rt.Role.String() + ".", "responses": responses(object{})}
		var list []object
		for _, m := range pathWord.FindAllStringSubmatch(rt.Path, -1) {
			list = append(list, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		if list != nil {
			op["parameters"] = list
		}
		at(strings.TrimSuffix(rt.Path, "{$}"), rt.Method, op)
	}
	for _, q := range questions() {
		at("/api/"+q.Route, http.MethodGet, questionOperation(q, types))
	}
	types["Error"] = object{"type": "object", "required": []string{"error"}, "properties": object{
		"error": object{"type": "string"},
		"field": object{"type": "string", "description": "The parameter that it is about."},
	}}
	Reply(w, object{
		"openapi": "3.0.3", "info": object{"title": "busbar", "version": s.Version}, "paths": paths,
		"components": object{
			"schemas": types, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []object{{"token": []string{}}},
	})
}

var pathWord = lazyre.New(`\{(\w+)(?:\.\.\.)?\}`)

// responses are the responses of a route whose document has a schema.
func responses(document object) object {
	as := func(text string, schema object) object {
		return object{"description": text, "content": object{"application/json": object{"schema": schema}}}
	}
	return object{"200": as("The document.", document), "default": as("Why there is none.", ref("Error"))}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// questionOperation is how a question is asked.
func questionOperation(q *ask.Question, types schemas) object {
	c := newIndexCommand(q)
	list := []object{}
	for _, p := range c.Parameters {
		value := object{"type": "string"}
		switch {
		case p.Value == "1":
			value["enum"] = []string{"1"}
		case len(p.Values) > 0:
			value["enum"] = p.Values
		}
		if p.Repeated {
			value = object{"type": "array", "items": value}
		}
		list = append(list, object{"name": p.Name, "in": "query", "description": p.Help, "schema": value})
	}
	document := reflect.TypeOf(q.Doc).Elem()
	schema := types.of(document)
	if of, ok := types[typeName(document)].(object); ok { // what every document begins with
		of["properties"].(object)["kind"] = object{"type": "string"}
		of["properties"].(object)["version"] = object{"type": "integer"}
	}
	return object{
		"operationId": strings.ReplaceAll(q.Route, "-", "_"), "summary": c.Command + " prints the same. Needs the role read.",
		"parameters": list, "responses": responses(schema),
	}
}

// schemas are those of types, by name.
type schemas map[string]any

// typeName is a type's name in letters that OpenAPI takes.
func typeName(t reflect.Type) string {
	return notInName.ReplaceAllString(strings.TrimPrefix(t.String(), "*"), "_")
}

var notInName = lazyre.New(`[^A-Za-z0-9._-]`)

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	texter    = reflect.TypeFor[encoding.TextMarshaler]()
)

// of is the schema of a type as encoding/json writes it. What writes itself is known by what its zero value writes.
func (s schemas) of(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if own := reflect.PointerTo(t); own.Implements(marshaler) || own.Implements(texter) {
		return ofZero(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "format": "byte"}
		}
		return object{"type": "array", "nullable": true, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "nullable": true, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	case reflect.Interface, reflect.Func, reflect.Chan:
		return object{}
	}
	return object{"type": "integer", "format": "int64"}
}

// ofZero is the schema of a type that writes itself.
func ofZero(t reflect.Type) object {
	text, err := json.Marshal(reflect.New(t).Interface())
	switch {
	case err != nil || len(text) == 0:
		return object{}
	case text[0] == '"':
		return object{"type": "string"}
	case strings.ContainsRune("-0123456789", rune(text[0])):
		return object{"type": "number"}
	}
	return object{}
}

// structure is the schema of a struct. One with a name is written once.
func (s schemas) structure(t reflect.Type) object {
	name := typeName(t)
	if t.Name() != "" && s[name] != nil {
		return ref(name)
	}
	fields := object{}
	schema := object{"type": "object", "properties": fields}
	if t.Name() != "" {
		s[name] = schema // before its fields, which may hold it
	}
	s.fields(t, fields)
	if t.Name() != "" {
		return ref(name)
	}
	return schema
}

// fields adds the fields of a struct, and those of structs that it embeds.
func (s schemas) fields(t reflect.Type, into object) {
	for f := range slices.Values(reflect.VisibleFields(t)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(f.Index) > 1 {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			s.fields(inner, into)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			of := s.of(f.Type)
			if f.Type.Kind() == reflect.Pointer && of["$ref"] == nil {
				of["nullable"] = true
			}
			into[name] = of
		}
	}
}
