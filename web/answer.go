package web

import (
	"encoding/json"
	"net/http"
)

const (
	jsonType    = "application/json; charset=utf-8"
	archiveType = "application/gzip"
)

// Fail answers with an error, in JSON.
func Fail(w http.ResponseWriter, code int, text string) {
	failWith(w, code, map[string]string{"error": text})
}

// refuse answers that a question is wrong, with the parameter that it is about.
func refuse(w http.ResponseWriter, err error) { failWith(w, http.StatusBadRequest, refused(err)) }

func failWith(w http.ResponseWriter, code int, doc map[string]string) {
	headed(w, jsonType, "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(doc) // the client has gone
}

// Reply answers with a document, in JSON.
func Reply(w http.ResponseWriter, v any) {
	data, err := encoded(v, maxAnswer)
	if err != nil {
		Fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	headed(w, jsonType, "no-store")
	_, _ = w.Write(data)
}

// headed says what an answer is, and whether it may be kept.
func headed(w http.ResponseWriter, mime, keep string) {
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Cache-Control", keep)
}
