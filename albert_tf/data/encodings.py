"""Which encoding a file of text has: UTF-8, or the likeliest of those of East Asia."""

from __future__ import annotations

import codecs
import re
from collections.abc import Container
from typing import NamedTuple

# The 600 commonest Chinese characters, the first of examples/albert_micro_zh/vocab.txt,
# their traditional forms, and punctuation.
_CHINESE = frozenset(
    "的是不了一有我好很人个在这还大就来到以上看你也都么没要多可时用能为和会中小得点天"
    "家过去说后下们年心自出生国子里错真感开他方发地对想面最那机比觉新现电道什行间实前"
    "美动分太然本学次果啊但作情服着事常高如全哈安于成之给度样起店手吃水意快老务只装日"
    "己经理喜别而非买知无些价东特力更欢车其合定种外体西加明进同业玩所吧完花爱主第让景"
    "直品便两等回物法吗公长三当做文重部再相打性内游问关工入月话因场量色位门通几又怎热"
    "解期提海信气影正区被路候从放酒少题应总节才书山口格推化系平值结较员今已头表挺二友"
    "与评风每费乐建女接望者活味网像音带效房片名算满票师收边设目观把原晚空十流何演该近"
    "程清单质视超件台差走元市强白孩环货数越住星儿使身制保代产各受拍故温周照客习送哪选"
    "并持呢速难听餐民级北式将她见容变早交适计世找线钱记光菜图处京且呗调张园需万整境款"
    "此器它论剧干深展朋城利金读态站运确待包油思商界南笑写基四谢神五跟管试号精及死够眼"
    "排希注马功联改微优取型始统半反刚导或宝求广般字先配教向妈示球考认棒版支技帮声失戏"
    "火置离议类续华荐简换验传语亲据连转至步男购泪斯专足任课达远春香贵由队讲决显饭首肉"
    "亮复条卡政资布形楼告息准虽办战科备必馆久消立王请司共象啦充识屏修古州福底择造米料"
    "标根院模段助拉指却报食易软红赞江幕百细牌历夜术终极户哦林响黑低谁歌毕退集护未升拿"
    "画鱼嘻坐暖许预切约午治野角证项增创湖往假奇随鸡博存施具致社源团称居省停领军钟英牛"
    "個這還來麼沒時爲會點過說後們國裏錯開發對機覺現電間實動學於給樣喫務裝經別買無價東"
    "歡車種體進業愛讓兩嗎長當內遊問關話場門幾熱氣區從題應總節書結較員頭與評風費樂網帶"
    "滿師邊設觀該單質視臺強環貨數兒產溫習選並難聽級將見變適計線錢記圖處唄調張園萬論劇"
    "幹讀態運確寫謝試號夠馬聯優統剛導寶廣媽認幫聲戲離議類續華薦簡換驗傳語親據連轉購淚"
    "專課達遠貴隊講決顯飯復條資樓準雖辦戰備館請識擇標卻報軟紅贊細歷術終極戶響誰畢護畫"
    "魚許預約證項創隨雞團稱領軍鍾為説裡著"
    "，。！？、；：“”（）《》"
)
_JAPANESE = _CHINESE.union(map(chr, range(0x3041, 0x30FF)))
# The 256 commonest syllables of Korean.
_KOREAN = frozenset(
    "이다는을에의가고하은를지도로한기사대시인서아자어나리그정일라해보주들부있수전상등"
    "게으과제었면여내요거만장것원마구니했러공때안성소스비우조유너신세같와무습네말생모"
    "경동개국발계치오위적르까았진연최물할않년중양심분데려방음식바드트집던친결였운쉬현"
    "재회문교학민산업법금감독영화악당호텔배송청난후예약좋맛없싶많작큰빠늦추천불편족별"
    "점품질격포함께번씩날씨길밥건강출근퇴월초반저희님씀엔져졌겠봐봤갔왔줄볼될든럼럽워"
    "웠켜셔죠쪽잘못알쓰써듣읽놓두실끝층종육역활용체험터넷뉴권투표론답환율히특색책찾빨"
    "밤낮침녁놀랐팔샀싸태풍눈겨울봄름"
)

# The characters that speak for an encoding. cp950, cp932 and cp949 are Big5, Shift JIS
# and EUC-KR as Windows writes them.
_CANDIDATES = {
    **dict.fromkeys(("gb18030", "cp950", "big5hkscs"), _CHINESE),
    **dict.fromkeys(("cp932", "euc_jp"), _JAPANESE),
    "cp949": _KOREAN,
    **dict.fromkeys(("utf-16-le", "utf-16-be"), _JAPANESE | _KOREAN),
}
# UTF-16 without a mark, which makes characters of any bytes, and EUC of Japan are rare.
_PENALTY = {"utf-16-le": 0.2, "utf-16-be": 0.2, "euc_jp": 0.1}
_PRIVATE = frozenset(map(chr, range(0xE000, 0xF900)))
# What messages call them.
NAMES = {
    "cp950": "big5 (cp950)",
    "cp932": "shift_jis (cp932)",
    "cp949": "euc_kr (cp949)",
}
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    # Before those of UTF-16, with which they begin.
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
}
# The number of characters that tell encodings apart, and the scores that do not.
_SAMPLE, _LEAST, _MARGIN = 20_000, 0.1, 0.15


class Guess(NamedTuple):
    """The encoding of a text, `None` if none fits, and another that fits as well."""

    encoding: str | None
    other: str | None = None


def guess_encoding(data: bytes) -> Guess:
    """Return the encoding of the start of a text.

    It is UTF-8 if half of the lines are: then the other ones are damaged. Else it is
    the one in which the largest share of the characters is common.
    """
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return Guess(name)
    zeros = [data[i:4000:4].count(0) for i in range(4)]
    if 25 * sum(zeros) > min(len(data), 4000):
        # Of an ASCII character, one byte of two or three of four are 0.
        is_wide = max(min(zeros[:2]), min(zeros[2:])) > len(data[:4000]) // 5
        order = "be" if zeros[0] + zeros[2] > zeros[1] + zeros[3] else "le"
        return Guess(f"utf-{32 if is_wide else 16}-{order}")
    is_utf8 = decoded(data, "utf-8") is not None
    if re.search(rb"[\x01-\x08\x0e-\x1f]", data):
        for name in ("utf-16-le", "utf-16-be"):
            if _score(decoded(data, name), name) > 0.3:
                return Guess(name, "utf-8" if is_utf8 else None)
    if is_utf8:
        return Guess("utf-8")
    lines = [line for line in re.split(b"[\r\n]", data) if not line.isascii()]
    valid = [text for x in lines if (text := decoded(x, "utf-8")) is not None]
    if 2 * len(valid) >= len(lines):
        return Guess("utf-8")
    if any(_share(text, _CHINESE) > 0.5 and len(text) > 1 for text in valid):
        return Guess(None, "utf-8")
    scores = {x: _score(decoded(data, x), x) for x in _CANDIDATES}
    if scores["cp950"] >= 0:
        # A superset, for what that cannot decode.
        del scores["big5hkscs"]
    other, best = sorted(scores, key=scores.__getitem__)[-2:]
    # Few characters tell less.
    margin = _MARGIN + 2 / max(sum(map(len, lines)), 1)
    is_close = scores[other] > scores[best] - margin
    return Guess(best if scores[best] >= _LEAST else None, other if is_close else None)


def decoded(data: bytes, encoding: str) -> str | None:
    """Return the text of bytes whose last character may be incomplete, or `None`."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None


def _score(text: str | None, encoding: str) -> float:
    if text is None:
        return -9.0
    score = _share(text, _CANDIDATES[encoding]) - 5 * _share(text, _PRIVATE)
    return score - _PENALTY.get(encoding, 0)


def _share(text: str, characters: Container[str]) -> float:
    """Return the share of some characters among those that are not ASCII."""
    others = [x for x in text[: 5 * _SAMPLE] if not x.isascii()][:_SAMPLE]
    return sum(x in characters for x in others) / max(len(others), 1)
