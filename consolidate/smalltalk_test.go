package consolidate_test

import "testing"

// smallTalk is what people say when nothing is decided, in ten languages.
var smallTalk = map[string][]string{
	"en": {"morning! did you sleep well?", "haha, good one", "thanks a lot, that helped", "what time is it over there?", "I had soup for lunch", "never mind, found it", "the train was late again"},
	"de": {"guten Morgen!", "wie geht's dir heute?", "danke, das ging ja schnell", "was macht diese Funktion?", "ich hatte heute Suppe zum Mittag", "hm, interessant", "draußen regnet es schon wieder"},
	"es": {"buenos días, ¿qué tal?", "gracias, muy amable", "¿qué hace este archivo?", "hoy hace mucho calor aquí", "jaja, qué bueno", "ah, ya lo veo", "anoche vi una película preciosa"},
	"fr": {"bonjour !", "merci, c'est gentil", "comment ça marche, ce truc ?", "il pleut encore chez nous", "ah, je vois", "c'était un bon film hier", "tu as bien dormi ?"},
	"it": {"buongiorno, come va?", "grazie mille", "che cosa fa questa funzione?", "oggi piove a dirotto", "ah, capisco", "ieri ho visto un bel film", "che fame che ho"},
	"pt": {"bom dia, tudo bem?", "obrigado, foi rápido", "o que faz esta função?", "hoje está muito calor", "ah, entendi", "ontem vi um filme bonito", "que sono que eu tenho"},
	"ru": {"доброе утро!", "спасибо, очень быстро", "что делает эта функция?", "у нас опять идёт дождь", "а, понятно", "вчера был хороший фильм", "как дела?"},
	"zh": {"早上好！", "谢谢你", "这个函数是做什么的？", "今天下雨了", "哦，明白了", "昨天的电影很好看", "你吃饭了吗？"},
	"ko": {"좋은 아침이에요!", "고마워요", "이 함수는 뭐 하는 거예요?", "오늘은 비가 와요", "아, 그렇군요", "어제 영화 재미있었어요", "점심 드셨어요?"},
	"hi": {"सुप्रभात!", "धन्यवाद", "यह फ़ंक्शन क्या करता है?", "आज बारिश हो रही है", "अच्छा, समझ गया", "कल की फ़िल्म अच्छी थी", "आप कैसे हैं?"},
}

// TestSmallTalkInManyLanguages reads fifty windows, five in each language.
func TestSmallTalkInManyLanguages(t *testing.T) {
	answers := []string{"Good morning! How can I help?", "You're welcome.", "It reads the file and returns its lines.", "All tests pass.", "I see."}
	for language, talk := range smallTalk {
		for i := range 5 {
			var lines []string
			for j := range 4 {
				lines = append(lines, "> "+talk[(i*3+j)%len(talk)], "< "+answers[(i+j*2)%len(answers)])
			}
			if got := read(t, chat(lines...)); len(got) > 0 {
				t.Errorf("%s, window %d gave %v", language, i, all(got))
			}
		}
	}
}
